-- Busy models: a provider that refuses calls of a model for now is asked again after longer and longer waits. All workers wait
-- together, so the wait is a row. Each waiting task has a row with the start of its wait, because that wait has an end.

create table dalsegno.busy_models (
  provider text not null,
  model text not null,
  since timestamptz not null,
  refused_at timestamptz not null,
  until timestamptz not null,
  refusals integer not null,
  why text not null,
  constraint busy_models_pkey primary key (provider, model)
);
comment on table dalsegno.busy_models is
  'Models whose provider refuses calls for now. The next answer removes the row; a row that no call has touched for an hour counts no '
  'more.';
comment on column dalsegno.busy_models.since is 'The first refusal since the last answer.';
comment on column dalsegno.busy_models.refused_at is 'The last one. Calls that had begun before it do not make the wait longer.';
comment on column dalsegno.busy_models.until is 'When one turn may try. It moves this on, so that the others go on waiting.';
comment on column dalsegno.busy_models.refusals is 'Waits in a row, each about twice as long as the one before.';
comment on column dalsegno.busy_models.why is 'The last error of the provider.';

create table dalsegno.busy_tasks (
  task_id uuid not null
    constraint busy_tasks_pkey primary key
    constraint busy_tasks_task references dalsegno.tasks (id) on delete cascade,
  since timestamptz not null,
  until timestamptz not null
);
comment on table dalsegno.busy_tasks is
  'Tasks that wait for a busy provider, or for a login without a limit left. A row counts until an hour after its end, and stays with '
  'its task.';
comment on column dalsegno.busy_tasks.since is 'The beginning of the first wait in a row.';
comment on column dalsegno.busy_tasks.until is 'The end of the last one.';
