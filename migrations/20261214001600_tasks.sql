-- Tasks: requests to agents in a campaign.
--
-- A task that was asked for again under its idempotency key is found by the job that the key stands for. A retry gives the task
-- another job, so the first one is remembered in first_job_id: NULL for nearly all tasks, and neither adding nor running one writes it.
--
-- Indexes of open tasks have `ended_at` in their predicate and not the state: beginning a turn changes the state, and would rewrite
-- every index of the table.

create function dalsegno.is_consistent_task(
  state text, started_at timestamptz, ended_at timestamptz, has_result boolean, has_error boolean, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return state in ('queued', 'running', 'done', 'failed', 'cancelled')
     and (state in ('done', 'failed', 'cancelled')) = (ended_at is not null)
     and (state = 'done') = has_result
     and (state = 'failed') = has_error
     and (state <> 'running' or started_at is not null)
     and least_count >= 0;
end
$body$;
comment on function dalsegno.is_consistent_task(text, timestamptz, timestamptz, boolean, boolean, bigint) is
  'The state machine: which columns of a task are set in which state.';

create table dalsegno.tasks (
  id uuid not null constraint tasks_pkey primary key,
  campaign_id uuid not null,
  job_id bigint not null,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  session_id uuid,
  turn integer,
  budget_micros bigint,
  budget_tokens bigint,
  spent_micros bigint not null default 0,
  spent_tokens bigint not null default 0,
  state text not null default 'queued',
  session_mode text not null default 'continue',
  agent text not null,
  instance text not null default 'main',
  prompt text not null,
  result text,
  error text,
  n_waits integer not null default 0,
  first_job_id bigint,
  added_by text,
  traceparent text
    constraint tasks_traceparent_form check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  parent_id uuid constraint tasks_parent references dalsegno.tasks (id),
  continues_id uuid constraint tasks_continues references dalsegno.tasks (id),
  cancelled_because text,
  flow_id uuid,
  step text,
  step_place integer,
  post_id uuid,
  stop_asked_at timestamptz,
  node text constraint tasks_node_form check (node ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  priority smallint not null default 100,
  run_at timestamptz,
  constraint tasks_state_machine check (dalsegno.is_consistent_task(
    state, started_at, ended_at, result is not null, error is not null, least(spent_micros, spent_tokens, n_waits)))
) with (fillfactor = 80);
comment on table dalsegno.tasks is 'A request to an agent in a campaign. Stays until it is erased; its job goes when the task ends.';
comment on column dalsegno.tasks.campaign_id is 'Its campaign, which is looked at when the task is added, and never removed.';
comment on column dalsegno.tasks.job_id is
  'The job that runs it. Written in the transaction that enqueued it; another one after a retry of an ended task.';
comment on column dalsegno.tasks.session_id is 'The session it ran in last.';
comment on column dalsegno.tasks.turn is 'Its latest turn in that session.';
comment on column dalsegno.tasks.spent_micros is 'Cost of all its attempts, the failed ones too.';
comment on column dalsegno.tasks.session_mode is
  'continue the open session; begin a fresh one; none: a session of its own that no later task continues.';
comment on column dalsegno.tasks.n_waits is
  'Number of times in a row that its turn was put off before it began, for instance because the budget is reserved by other turns. 0 '
  'once it begins.';
comment on column dalsegno.tasks.first_job_id is
  'The job that it was added with, if a retry has given it another. NULL: job_id is still that one.';
comment on column dalsegno.tasks.added_by is
  'The author, written as in the audit log: key:ci:3f0c2a9be1d4, cli:ann@host. NULL: added in another way than the API and the command '
  'line.';
comment on column dalsegno.tasks.traceparent is
  'The span that asked for it, as a header of W3C Trace Context; NULL if the caller sent none.';
comment on column dalsegno.tasks.parent_id is 'The task that handed this one out. Cancelling the parent cancels this one.';
comment on column dalsegno.tasks.continues_id is
  'The task whose work this one takes up again in the same conversation, once all its children have ended.';
comment on column dalsegno.tasks.cancelled_because is
  'The reason given with the request to cancel. It counts if the state is cancelled: a turn that runs may end before it is stopped.';
comment on column dalsegno.tasks.flow_id is 'The flow that it is a part of.';
comment on column dalsegno.tasks.step is 'Its step in the flow.';
comment on column dalsegno.tasks.step_place is
  'Its place among the tasks of the flow, from 0. Of several with one place, the latest counts.';
comment on column dalsegno.tasks.post_id is 'The post that it was made from; its prompt is that text. NULL: a direct request.';
comment on column dalsegno.tasks.stop_asked_at is
  'Since when its turn is to stop at the next point where nothing is lost. No other turn of it begins; a retry forgets it.';
comment on column dalsegno.tasks.node is
  'The node of the work that the task belongs to; its turn enters it. NULL: the task stays where its session stands.';
comment on column dalsegno.tasks.priority is 'Priority of the request; 0 is the most urgent.';
comment on column dalsegno.tasks.run_at is 'The run_at of the request. NULL: at once.';

create unique index tasks_one_per_job on dalsegno.tasks (job_id);
create index tasks_by_campaign on dalsegno.tasks (campaign_id, id desc);
create index tasks_live on dalsegno.tasks (job_id) where ended_at is null;
comment on index dalsegno.tasks_live is 'The tasks that still wait for an end, by the job that will write it.';
create unique index tasks_one_per_first_job on dalsegno.tasks (first_job_id) where first_job_id is not null;
comment on index dalsegno.tasks_one_per_first_job is 'Retried tasks by the job that their idempotency key stands for.';
create index tasks_live_by_conversation on dalsegno.tasks (campaign_id, agent, instance) where ended_at is null;
comment on index dalsegno.tasks_live_by_conversation is 'The tasks of a conversation that have not ended.';
create index tasks_by_parent on dalsegno.tasks (parent_id, id) where parent_id is not null;
create index tasks_by_continued on dalsegno.tasks (continues_id, id) where continues_id is not null;
create index tasks_by_flow on dalsegno.tasks (flow_id, step_place, id desc) where flow_id is not null;
create index tasks_by_post on dalsegno.tasks (post_id) where post_id is not null;
create index tasks_live_by_campaign on dalsegno.tasks (campaign_id) where ended_at is null;
comment on index dalsegno.tasks_live_by_campaign is 'Open tasks of a campaign''s agents.';
create index tasks_failed_by_conversation on dalsegno.tasks (campaign_id, agent, instance, ended_at desc) where state = 'failed';
comment on index dalsegno.tasks_failed_by_conversation is
  'When an agent failed last. Only failures are in it: other ends cost nothing more.';

-- A turn changes the row twice, and its prompt never: a long prompt is stored outside of the row and not rewritten.
alter table dalsegno.tasks set (toast_tuple_target = 128);
-- A server may have been built without lz4; then Postgres compresses with its default.
do $body$
begin
  alter table dalsegno.tasks alter column prompt set compression lz4, alter column result set compression lz4;
exception when feature_not_supported then
  raise notice 'this server has no lz4: long texts are packed by pglz';
end
$body$;

create function dalsegno.check_asked() returns trigger language plpgsql as $body$
declare
  broken text := case
    when new.agent !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'tasks_agent_form'
    when new.instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'tasks_instance_form'
    when new.session_mode not in ('continue', 'fresh', 'none') then 'tasks_session_mode_known'
    when new.budget_micros <= 0 then 'tasks_budget_micros_positive'
    when new.budget_tokens <= 0 then 'tasks_budget_tokens_positive'
    when btrim(new.prompt) = '' then 'tasks_prompt_not_empty'
  end;
begin
  if broken is not null then
    raise check_violation using constraint = broken, schema = tg_table_schema, table = tg_table_name,
      message = format('new row for relation "tasks" violates check constraint "%s"', broken);
  end if;
  return null;
end
$body$;
comment on function dalsegno.check_asked() is 'Checks the input of a task when it is added, and when a statement changes it.';

create trigger tasks_asked after insert or update of agent, instance, session_mode, budget_micros, budget_tokens, prompt
  on dalsegno.tasks for each row execute function dalsegno.check_asked();
