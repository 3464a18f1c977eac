-- Whoever ends a task does not wait for whoever changes its flow.
--
-- The end of a task holds the rows of the task and its job when its commit looks at the flow of what waits for it. Whoever lets the
-- flow go on, or has it go on again from a step, holds the flow's row and then wants those of its tasks: each would wait for the
-- other. So a flow that somebody has locked is taken for a paused one. Nothing is lost by that: who lets a flow go on counts what
-- its tasks wait for, behind the commit of every end that came first; else the sweep of the workers finds the wait.
--
-- For the same reason whoever has the flow takes the rows of its tasks before those of their waits, as every end of a task does.

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
     where d.task_id = waiting and t.state in ('failed', 'cancelled') and d.forgiven_job is distinct from t.job_id
     order by d.place limit 1;
  end if;
  if own.ended_at is null and wait.n_open > 0 and reason is null then
    return false;
  end if;
  if own.ended_at is null and reason is null and own.flow_id is not null then
    -- Whoever pauses it waits for this commit. Never the other way round: see the top of this file.
    perform from dalsegno.flows as f where f.id = own.flow_id and f.paused_at is null for share skip locked;
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

create or replace function dalsegno.resume_flow(flow uuid) returns boolean language plpgsql as $body$
#variable_conflict use_column
declare
  waiting uuid;
begin
  update dalsegno.flows as f set paused_at = null where f.id = flow and f.paused_at is not null;
  if not found then
    return false;
  end if;
  perform from dalsegno.tasks as t where t.flow_id = flow order by t.id for share;
  for waiting in
    select w.task_id from dalsegno.task_waits as w join dalsegno.tasks as t on t.id = w.task_id
     where t.flow_id = flow and w.over_at is null order by t.step_place, w.task_id
  loop
    perform dalsegno.count_task_wait(waiting);
  end loop;
  return true;
end
$body$;

create function dalsegno.is_flow_paused(flow uuid) returns boolean language sql stable as $body$
  select exists (select from dalsegno.flows as f where f.id = flow and f.paused_at is not null)
$body$;
comment on function dalsegno.is_flow_paused(uuid) is 'Whether nothing of a flow begins. NULL is no flow, and not paused.';
