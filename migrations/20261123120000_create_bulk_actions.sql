-- Actions on many tasks at once, which a worker carries out.

create table dalsegno.bulk_actions (
  id uuid constraint bulk_actions_pkey primary key,
  created_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  job_id bigint not null,
  cursor uuid,
  matched bigint not null,
  done bigint not null default 0,
  skipped bigint not null default 0,
  action text not null constraint bulk_actions_action_known check (action in ('cancel', 'retry')),
  state text not null default 'queued' constraint bulk_actions_state_known check (state in ('queued', 'running', 'done', 'cancelled')),
  reason text not null,
  filter jsonb not null,
  constraint bulk_actions_end_complete check ((ended_at is null) = (state in ('queued', 'running'))),
  constraint bulk_actions_not_negative check (least(matched, done, skipped) >= 0)
);
comment on table dalsegno.bulk_actions is 'What somebody asked to be done with all tasks that match a filter, and how far that is.';
comment on column dalsegno.bulk_actions.created_at is 'When it was asked. Tasks that were added later are not meant.';
comment on column dalsegno.bulk_actions.job_id is 'The job that carries it out.';
comment on column dalsegno.bulk_actions.cursor is 'The task that was looked at last; the next run goes on behind it.';
comment on column dalsegno.bulk_actions.matched is 'Tasks that matched when it was asked.';
comment on column dalsegno.bulk_actions.done is 'Tasks with which it was done.';
comment on column dalsegno.bulk_actions.skipped is 'Tasks that had changed meanwhile, so that it could not be done.';
comment on column dalsegno.bulk_actions.reason is 'Why, for whoever finds a task cancelled.';
comment on column dalsegno.bulk_actions.filter is 'Which tasks are meant: campaign_id, agent, instance, state, created_before. A key that is absent matches all.';
