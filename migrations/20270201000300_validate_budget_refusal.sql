-- Validates the constraint on tasks.budget_refusal, which was added without a look at the rows.
--
-- No row can break it: no task had a value before the constraint, and Postgres checks every row that is written since. The lock
-- (share update exclusive) blocks neither reads nor writes of tasks; it lasts for one read of the table.
alter table dalsegno.tasks validate constraint tasks_budget_refusal_of_failed;
