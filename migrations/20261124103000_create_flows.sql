-- Flows: tasks that were made together from a template, each waiting for those before it.
--
-- What a flow's state is follows from its tasks. A step that is tried again has a new task at its place; the latest one counts.
--
-- A flow that is paused lets nothing begin: what has not begun waits for a signal, and no signal is given. Race: the last of what a task
-- waits for ends while its flow is paused. Who signals shares the row of the flow, and who pauses changes it: one waits for the
-- other's commit, and then sees it.

create table dalsegno.flows (
  id uuid not null constraint flows_pkey primary key,
  campaign_id uuid not null constraint flows_campaign references dalsegno.campaigns (id),
  created_at timestamptz not null,
  paused_at timestamptz,
  template text not null constraint flows_template_form check (template ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  added_by text,
  inputs jsonb not null default '{}' constraint flows_inputs_object check (jsonb_typeof(inputs) = 'object')
);
create index flows_by_campaign on dalsegno.flows (campaign_id, id desc);
comment on table dalsegno.flows is 'Tasks that were made together from a template of config/workflows.';
comment on column dalsegno.flows.paused_at is 'Since when nothing of it begins. NULL: it goes on.';
comment on column dalsegno.flows.template is 'The name of the template. What its file said is in the prompts of the tasks; it may have changed since.';
comment on column dalsegno.flows.added_by is 'Who started it, as the audit log names them.';
comment on column dalsegno.flows.inputs is 'What it was started with: texts and lists of texts by name.';

alter table dalsegno.tasks
  add column flow_id uuid constraint tasks_flow references dalsegno.flows (id),
  add column step text,
  add column step_place integer;
create index tasks_by_flow on dalsegno.tasks (flow_id, step_place, id desc) where flow_id is not null;
comment on column dalsegno.tasks.flow_id is 'The flow that it is a part of.';
comment on column dalsegno.tasks.step is 'Its step in the flow.';
comment on column dalsegno.tasks.step_place is 'Its place among the tasks of the flow, from 0. Of several with one place, the latest counts.';

create view dalsegno.flow_steps as
  select distinct on (t.flow_id, t.step_place)
         t.flow_id, t.step_place as place, t.step, t.id as task_id, t.agent, t.instance, t.state, t.created_at, t.started_at, t.ended_at
    from dalsegno.tasks as t
   where t.flow_id is not null
   order by t.flow_id, t.step_place, t.id desc;
comment on view dalsegno.flow_steps is 'The task that counts at each place of each flow.';

create view dalsegno.flow_states as
  select f.id, f.campaign_id, f.template, f.created_at, f.paused_at, f.added_by, f.inputs,
         case when s.open > 0 and f.paused_at is not null then 'paused'
              when s.open > 0 then 'running'
              when s.failed > 0 then 'failed'
              when s.cancelled > 0 then 'cancelled'
              else 'done' end as state,
         s.tasks, s.done, s.failed, s.cancelled, s.open, s.ended_at
    from dalsegno.flows as f
   cross join lateral (
         select count(*) as tasks,
                count(*) filter (where t.state = 'done') as done,
                count(*) filter (where t.state = 'failed') as failed,
                count(*) filter (where t.state = 'cancelled') as cancelled,
                count(*) filter (where t.ended_at is null) as open,
                case when bool_and(t.ended_at is not null) then max(t.ended_at) end as ended_at
           from dalsegno.flow_steps as t where t.flow_id = f.id) as s;
comment on view dalsegno.flow_states is 'Flows with what follows from their tasks: running, paused, done, failed, cancelled, and how many tasks are what.';

create function dalsegno.put_aside(job_ids bigint[]) returns integer language plpgsql as $body$
#variable_conflict use_column
declare
  lanes bigint[];
  n_jobs integer;
begin
  with taken as (
    select j.id, j.state, j.lane_id from dalsegno.jobs as j
     where j.id = any (job_ids) and j.hold_by is null
       and (j.state in ('ready', 'blocked') or (j.state = 'scheduled' and j.wait_reason = 'later'))
     order by j.id for update skip locked
  ), changed as (
    update dalsegno.jobs as j set state = 'scheduled', wait_reason = 'signal', lane_seq = null, run_at = dalsegno.never()
      from taken as t where j.id = t.id
    returning j.queue, j.kind, t.state, t.lane_id
  ), counted as (
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select c.queue, c.kind, 'hold', c.state, 'scheduled', count(*) from changed as c
     where c.state <> 'scheduled' group by c.queue, c.kind, c.state
  ), owed as (
    insert into dalsegno.lane_sweeps (lane_id)
    select distinct c.lane_id from changed as c where c.state = 'ready' and c.lane_id is not null
  )
  select count(*), array_agg(c.lane_id) filter (where c.state = 'ready' and c.lane_id is not null) into n_jobs, lanes from changed as c;
  perform dalsegno.promote_lanes(lanes);
  return n_jobs;
end
$body$;
comment on function dalsegno.put_aside(bigint[]) is
  'Has jobs that have not begun, and that nobody holds, wait for dalsegno.signal(). They lose their place in the lane. Returns how many.';

create function dalsegno.pause_flow(flow uuid, moment timestamptz) returns boolean language plpgsql as $body$
#variable_conflict use_column
declare
  task record;
begin
  update dalsegno.flows as f set paused_at = moment where f.id = flow and f.paused_at is null;
  if not found then
    return false;
  end if;
  -- A statement of its own, which sees what whoever held the row of the flow has written.
  for task in
    select t.id, t.job_id from dalsegno.tasks as t
     where t.flow_id = flow and t.ended_at is null and t.started_at is null order by t.id
  loop
    if dalsegno.put_aside(array[task.job_id]) > 0 then
      delete from dalsegno.task_waits as w where w.task_id = task.id and w.over_at is not null;
      insert into dalsegno.task_waits (task_id) values (task.id) on conflict on constraint task_waits_pkey do nothing;
    end if;
  end loop;
  return true;
end
$body$;
comment on function dalsegno.pause_flow(uuid, timestamptz) is 'Lets nothing of a flow begin any more; what has begun goes on. false: it is paused, or there is none.';

create function dalsegno.resume_flow(flow uuid) returns boolean language plpgsql as $body$
#variable_conflict use_column
declare
  waiting uuid;
begin
  update dalsegno.flows as f set paused_at = null where f.id = flow and f.paused_at is not null;
  if not found then
    return false;
  end if;
  for waiting in
    select w.task_id from dalsegno.task_waits as w join dalsegno.tasks as t on t.id = w.task_id
     where t.flow_id = flow and w.over_at is null order by t.step_place, w.task_id
  loop
    perform dalsegno.count_task_wait(waiting);
  end loop;
  return true;
end
$body$;
comment on function dalsegno.resume_flow(uuid) is 'Lets a paused flow go on. false: it is not paused, or there is none.';

create or replace function dalsegno.look_at_task_wait(waiting uuid, moment timestamptz default clock_timestamp()) returns boolean
  language plpgsql as $body$
#variable_conflict use_column
declare
  wait dalsegno.task_waits;
  own record;
  reason text;
begin
  select * into wait from dalsegno.task_waits as w where w.task_id = waiting and w.over_at is null for update;
  if not found then
    return true;
  end if;
  select t.job_id, t.ended_at, t.flow_id into own from dalsegno.tasks as t where t.id = waiting;
  if wait.on_failure = 'cancel' and own.ended_at is null then
    select format('task %s of %s/%s, which it waited for, %s', t.id, t.agent, t.instance,
                  case t.state when 'failed' then 'has failed' else 'was cancelled' end) into reason
      from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
     where d.task_id = waiting and t.state in ('failed', 'cancelled') order by d.place limit 1;
  end if;
  if own.ended_at is null and wait.n_open > 0 and reason is null then
    return false;
  end if;
  if own.ended_at is null and reason is null and own.flow_id is not null then
    -- Whoever pauses it waits for this commit, or is waited for.
    perform from dalsegno.flows as f where f.id = own.flow_id and f.paused_at is null for share;
    if not found then
      return false;
    end if;
  end if;
  if own.ended_at is null then
    -- Never waits: see dalsegno.signal.
    perform from dalsegno.jobs as j where j.id = own.job_id and j.wait_reason = 'signal' for update skip locked;
    if found and reason is not null then
      perform dalsegno.cancel_waiting_task(waiting, own.job_id, reason, moment);
    elsif found then
      perform dalsegno.signal(array[own.job_id], wait.not_before);
    elsif exists (select from dalsegno.jobs as j where j.id = own.job_id and j.wait_reason = 'signal') then
      return false;
    end if;
  end if;
  -- Where the job did not wait any more, a person had it run before.
  update dalsegno.task_waits as w set over_at = moment where w.task_id = waiting;
  return true;
end
$body$;
