-- What a failure of what a task waits for does to it stays what was asked for, whatever happens to the task meanwhile: it is put
-- aside with its flow, or put on the queue again.
--
-- Whoever puts a task on the queue again knows what has failed by then, and wants it to run all the same. What fails later counts,
-- also the same task, which then has another job: so the failure that is known is remembered by its job.

alter table dalsegno.task_dependencies add column forgiven_job bigint;
comment on column dalsegno.task_dependencies.forgiven_job is
  'The job of the other task whose failure no longer cancels this one: it was known when this one was put on the queue again.';

create function dalsegno.wait_aside(waiting uuid) returns void language sql as $body$
  -- The count is made anew, with locks, when its flow goes on. Without them here: whoever ends one of the others at this moment
  -- waits for this row, and counts down from what is written now.
  insert into dalsegno.task_waits as w (task_id) values (waiting)
  on conflict on constraint task_waits_pkey do update
     set over_at = null, not_before = null,
         n_open = (select count(*) from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
                    where d.task_id = waiting and t.ended_at is null)
   where w.over_at is not null
$body$;
comment on function dalsegno.wait_aside(uuid) is
  'Has a task wait whose job was put aside, for as long as its flow is paused. What a failure does to it stays.';

create or replace function dalsegno.pause_flow(flow uuid, moment timestamptz) returns boolean language plpgsql as $body$
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
      perform dalsegno.wait_aside(task.id);
    end if;
  end loop;
  return true;
end
$body$;

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
