-- A bulk action whose job has died does not go on: it says so, and why, until somebody tries the job again.
--
-- To a binary that does not know the state, such an action cannot be read; it meets one only where the newer binary has ended it.
alter table dalsegno.bulk_actions
  add column error text,
  drop constraint bulk_actions_state_known,
  add constraint bulk_actions_state_known check (state in ('queued', 'running', 'done', 'cancelled', 'failed')) not valid,
  add constraint bulk_actions_error_complete check ((state = 'failed') = (error is not null)) not valid;
create index bulk_actions_open on dalsegno.bulk_actions (job_id) where ended_at is null;
comment on column dalsegno.bulk_actions.error is 'Why its job has died, if it has. What was done until then stays.';
comment on index dalsegno.bulk_actions_open is 'Those that still wait for an end, by the job that will write it.';
