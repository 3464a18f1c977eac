-- Records for what a put-off job waits: its provider, a limit of this service, or a batch. Lists showed one phrase for all three.
--
-- The cause belongs to the run that put the job off, so that it is never that of an earlier wait. Workers of an older version beside this one
-- write none: their waits keep the general words.
--
-- Adds: runs.wait_cause. A migration of its own validates the constraint: here it would read the whole table under a lock that stops all workers.

alter table dalsegno.runs add column wait_cause text collate "C";
comment on column dalsegno.runs.wait_cause is
  'After a snooze: provider (busy, refuses, or unreachable), limit (a budget or a rate limit has no space), batch (the provider has the call as '
  'a batch). NULL: another cause, which the error names, or a worker of an older version.';
alter table dalsegno.runs add constraint wait_cause_known check (wait_cause in ('provider', 'limit', 'batch')) not valid;
