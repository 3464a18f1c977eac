-- Message batches: the call of a task whose answer may take hours is sent as a batch, at half of the price, and no worker waits for it.
--
-- A turn begins, its call is sent as a batch of one request, and the job is put off until the next look at the batch. The turn stays on its
-- session and keeps its reservation. A later run of the job reads the answer and commits the turn. The row is written before the request is
-- sent, so that a worker that dies between the two leaves the id of the call: the next run looks for it in the provider's list of batches.
--
-- Adds: tasks.within_secs, batches.

alter table dalsegno.tasks add column within_secs integer;
comment on column dalsegno.tasks.within_secs is
  'Seconds that the answer may take, counted from created_at, or from run_at if that is later. NULL: no time is given.';
-- Without a look at the rows that are there: none of them has a value.
alter table dalsegno.tasks add constraint tasks_within_positive check (within_secs > 0) not valid;

create table dalsegno.batches (
  session_id uuid not null,
  turn integer not null,
  task_id uuid not null constraint batches_task references dalsegno.tasks (id) on delete cascade,
  call_id uuid not null constraint batches_call_key unique,
  provider text not null collate "C",
  model text not null,
  batch_id text collate "C",
  sent_at timestamptz not null,
  last_sent_at timestamptz not null,
  answer_by timestamptz not null,
  cancelled_at timestamptz,
  n_looks integer not null default 0 constraint batches_looks_counted check (n_looks >= 0),
  problem text,
  open_turn text not null,
  constraint batches_pkey primary key (session_id, turn),
  constraint batches_turn foreign key (session_id, turn) references dalsegno.turns (session_id, number) on delete cascade,
  constraint batches_task_key unique (task_id)
);
comment on table dalsegno.batches is 'Calls of open turns that were sent as message batches, one batch for each. The end of the turn removes its row.';
comment on column dalsegno.batches.call_id is 'Our id of the call, by which the batch is found and the call is charged once.';
comment on column dalsegno.batches.batch_id is 'The provider''s id. NULL: the request is being sent, or its answer was lost.';
comment on column dalsegno.batches.sent_at is 'Set before the request is sent for the first time.';
comment on column dalsegno.batches.last_sent_at is 'Set before each sending: a batch that the provider does not have is sent again.';
comment on column dalsegno.batches.answer_by is 'The task no longer waits for the batch after this moment.';
comment on column dalsegno.batches.cancelled_at is 'Set once the batch was cancelled, because the task waits no longer.';
comment on column dalsegno.batches.problem is 'Error of the last look.';
comment on column dalsegno.batches.open_turn is 'The turn between its call and its end, with the texts that were sent, as JSON. Not jsonb, which changes the order of keys.';
