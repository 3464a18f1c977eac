-- Bulk actions: changes of many tasks at once, carried out by a worker. An action whose job has died ends as failed, with the reason,
-- until a person retries the job.

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
  state text not null default 'queued'
    constraint bulk_actions_state_known check (state in ('queued', 'running', 'done', 'cancelled', 'failed')),
  reason text not null,
  filter jsonb not null,
  error text,
  constraint bulk_actions_end_complete check ((ended_at is null) = (state in ('queued', 'running'))),
  constraint bulk_actions_not_negative check (least(matched, done, skipped) >= 0),
  constraint bulk_actions_error_complete check ((state = 'failed') = (error is not null))
);
comment on table dalsegno.bulk_actions is 'An action on all tasks that match a filter, and its progress.';
comment on column dalsegno.bulk_actions.created_at is 'Time of the request. Tasks that were added later are not included.';
comment on column dalsegno.bulk_actions.job_id is 'The job that carries it out.';
comment on column dalsegno.bulk_actions.cursor is 'The task that was looked at last; the next run goes on behind it.';
comment on column dalsegno.bulk_actions.matched is 'Tasks that matched at the time of the request.';
comment on column dalsegno.bulk_actions.done is 'Tasks that were changed.';
comment on column dalsegno.bulk_actions.skipped is 'Tasks that had changed before their turn came, so that the action did not apply.';
comment on column dalsegno.bulk_actions.reason is 'The reason, for people who find a task cancelled.';
comment on column dalsegno.bulk_actions.filter is
  'Which tasks are meant: campaign_id, agent, instance, state, created_before. A key that is absent matches all.';
comment on column dalsegno.bulk_actions.error is 'Why its job has died, if it has. What was done until then stays.';

create index bulk_actions_open on dalsegno.bulk_actions (job_id) where ended_at is null;
comment on index dalsegno.bulk_actions_open is 'Open actions by the job that will end them.';
