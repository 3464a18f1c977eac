-- Records for what a put-off job waits: its provider, a limit of this service, or a batch. Lists told all three with one phrase.
--
-- The cause belongs to the run that put the job off, so that it is never that of an earlier wait. Workers of an older version beside this one
-- write none: their waits keep the general words.
--
-- Adds: runs.wait_cause.

create domain dalsegno.wait_cause as text collate "C" constraint wait_cause_known check (value in ('provider', 'limit', 'batch'));
comment on domain dalsegno.wait_cause is 'The cause of a wait that a run has chosen.';

alter table dalsegno.runs add column wait_cause dalsegno.wait_cause;
comment on column dalsegno.runs.wait_cause is
  'After a snooze: provider (busy, refuses, or unreachable), limit (a budget or a rate limit has no space), batch (the provider has the call as '
  'a batch). NULL: another cause, which the error names, or a worker of an older version.';
