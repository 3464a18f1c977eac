-- Who asked for a task, as W3C Trace Context has it, for the link from the trace of its turns. What is there already has none, so
-- nobody has to wait until all of it was looked at.
alter table dalsegno.tasks
  add column traceparent text,
  add constraint tasks_traceparent_form check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$') not valid;
comment on column dalsegno.tasks.traceparent is 'The span that asked for it, as a header of W3C Trace Context; NULL if nobody said.';
