-- no-transaction
-- The ready jobs of groups that are more urgent than usual, for claims. A claim looks at 32 groups in turn, so with more groups an urgent job
-- waited until the turn came to its group. Unlike the other indexes for claims, this one shares its jobs with another: jobs_claim_grouped.
-- Jobs of the usual priority are not in it.
--
-- Adds: jobs_claim_urgent.
create index concurrently if not exists jobs_claim_urgent on dalsegno.jobs (queue, priority, run_at, id)
  where state = 'ready' and crash_count < 2 and group_key is not null and priority < 100;
