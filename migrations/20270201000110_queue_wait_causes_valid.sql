-- Validates the constraint on runs.wait_cause. The lock (share update exclusive) blocks neither reads nor writes of runs; it lasts for one read of
-- the table.
alter table dalsegno.runs validate constraint wait_cause_known;
