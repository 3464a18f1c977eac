-- Tasks whose job has ended without them are looked for among those that have not ended.
--
-- By the end and not by the state: beginning a turn changes the state, and would then rewrite every index of the table.
create index tasks_live on dalsegno.tasks (job_id) where ended_at is null;
comment on index dalsegno.tasks_live is 'The tasks that still wait for an end, by the job that will write it.';
comment on table dalsegno.feed is
  'The operator''s log of what happened. Not the transcript: of an answer it has at most previews while it was written, of a prompt nothing.';
