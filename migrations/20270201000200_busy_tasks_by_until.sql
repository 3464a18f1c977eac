-- no-transaction
-- The tasks that wait for a provider now. The row of a task that has failed or was cancelled while it waited stays, so the table grows with
-- each outage, and the overview, the doctor and the metrics read the newest rows only.
--
-- Adds: busy_tasks_by_until.
create index concurrently if not exists busy_tasks_by_until on dalsegno.busy_tasks (until);
