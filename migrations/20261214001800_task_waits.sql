-- Waits: tasks that wait for others, and flows that are paused.
--
-- The job of a task that waits for others waits for a signal. The end of the last predecessor gives it, in the transaction of that
-- end: a trigger on ended_at, because several statements end tasks. Its job is of a kind of its own, `run_joined_turn`: a worker
-- that does not know the kind, and would not show the results of the others, leaves it alone.
--
-- Races, and how they are decided:
--   * two predecessors end at once: n_open is counted down under the lock of the row; the second one sees the count of the first;
--   * a predecessor ends while the waiting task is being added: at its commit the addition locks all predecessors, and counts. An
--     end that came before is counted, and one that comes after finds the committed rows;
--   * the waiting task is cancelled at the same moment: the signal skips a locked job; a sweep looks again;
--   * a predecessor is put on the queue again: it counts again, if the wait is not over.
-- All of this happens at the commit, in deferred triggers: last in each transaction, so that no lock is held for long.
--
-- A retried task runs although predecessors have failed. Failures that come later count, also of the same predecessor, which
-- then has another job: so the known failure is remembered by its job (forgiven_job).
--
-- Race with flows: the end of a task holds the rows of the task and its job when its commit looks at the flow of the waiting task. A
-- transaction that resumes the flow, or repeats it from a step, holds the flow's row and then wants those of its tasks: each would
-- wait for the other. So a locked flow is treated as a paused one. Nothing is lost by that: resuming a flow recounts the waits
-- of its tasks, after the commit of every end that came first; else the sweep of the workers finds the wait. For the same reason a
-- transaction that holds a flow locks the rows of its tasks before those of their waits, as every end of a task does.

create table dalsegno.task_waits (
  task_id uuid not null
    constraint task_waits_pkey primary key
    constraint task_waits_task references dalsegno.tasks (id),
  not_before timestamptz,
  over_at timestamptz,
  n_open integer not null default 0,
  on_failure text not null default 'run' constraint task_waits_on_failure_known check (on_failure in ('run', 'cancel'))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500);
comment on table dalsegno.task_waits is 'One row per task that waits, or has waited, for others.';
comment on column dalsegno.task_waits.not_before is 'The run_at of the request. NULL: none.';
comment on column dalsegno.task_waits.over_at is 'When it was let go, or ended without that. NULL: it waits.';
comment on column dalsegno.task_waits.n_open is
  'Number of predecessors that have not ended. Counted at the commit that adds the row, and down from there.';
comment on column dalsegno.task_waits.on_failure is
  'run: it is told of failures and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled.';

create index task_waits_not_over on dalsegno.task_waits (task_id) where over_at is null;
comment on index dalsegno.task_waits_not_over is 'The waits that the sweep reads.';

create table dalsegno.task_dependencies (
  task_id uuid not null constraint task_dependencies_task references dalsegno.tasks (id),
  on_task_id uuid not null constraint task_dependencies_on_task references dalsegno.tasks (id),
  place integer not null,
  forgiven_job bigint,
  constraint task_dependencies_pkey primary key (task_id, place),
  constraint task_dependencies_unique unique (task_id, on_task_id),
  constraint task_dependencies_not_itself check (task_id <> on_task_id)
);
comment on table dalsegno.task_dependencies is
  'Which tasks a task waits for. A task can only name tasks that exist, so no circle can come about.';
comment on column dalsegno.task_dependencies.place is 'The order in which it is shown their results.';
comment on column dalsegno.task_dependencies.forgiven_job is
  'The job of the other task whose failure no longer cancels this one: it was known when this one was put on the queue again.';

create index task_dependencies_by_predecessor on dalsegno.task_dependencies (on_task_id);

---------------------------------------------------------------------------------- the end of a wait
create function dalsegno.cancel_waiting_task(waiting uuid, job_id bigint, reason text, moment timestamptz) returns void
  language plpgsql as $body$
#variable_conflict use_variable
begin
  perform dalsegno.cancel(job_id, reason);
  with ended as (
    update dalsegno.tasks as t set state = 'cancelled', ended_at = moment, cancelled_because = reason
     where t.id = waiting and t.job_id = cancel_waiting_task.job_id and t.ended_at is null
    returning t.id, t.campaign_id, t.session_id
  )
  insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
  select moment, e.campaign_id, e.id, e.session_id, 'task.cancelled', jsonb_build_object('reason', reason) from ended as e;
end
$body$;
comment on function dalsegno.cancel_waiting_task(uuid, bigint, text, timestamptz) is
  'Cancels a task that waits. The caller has locked its job.';

create function dalsegno.look_at_task_wait(waiting uuid, moment timestamptz default clock_timestamp()) returns boolean
  language plpgsql as $body$
#variable_conflict use_column
declare
  wait dalsegno.task_waits;
  own record;
  reason text;
  job_wait text;
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
    -- A transaction that pauses it waits for this commit. Never the other way round: see the top of this file.
    perform from dalsegno.flows as f where f.id = own.flow_id and f.paused_at is null for share skip locked;
    if not found then
      return false;
    end if;
  end if;
  if own.ended_at is null then
    -- Never waits, as dalsegno.signal.
    job_wait := dalsegno.lock_waiting(own.job_id);
    if job_wait = 'busy' then
      return false;
    elsif job_wait = 'locked' and reason is not null then
      perform dalsegno.cancel_waiting_task(waiting, own.job_id, reason, moment);
    elsif job_wait = 'locked' then
      perform dalsegno.signal(array[own.job_id], wait.not_before);
    end if;
  end if;
  -- Where the job did not wait any more, a person had it run before.
  update dalsegno.task_waits as w set over_at = moment where w.task_id = waiting;
  return true;
end
$body$;
comment on function dalsegno.look_at_task_wait(uuid, timestamptz) is
  'Ends a wait that has come to its end: gives the signal, or cancels the task. Returns whether it is over.';

create function dalsegno.count_task_wait(waiting uuid) returns boolean language plpgsql as $body$
#variable_conflict use_column
begin
  perform from dalsegno.tasks as t
    where t.id in (select d.on_task_id from dalsegno.task_dependencies as d where d.task_id = waiting)
    order by t.id for share of t;
  -- A statement of its own, with a snapshot from after the locks.
  update dalsegno.task_waits as w
     set n_open = (select count(*) from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
                    where d.task_id = waiting and t.ended_at is null)
   where w.task_id = waiting and w.over_at is null;
  return dalsegno.look_at_task_wait(waiting);
end
$body$;
comment on function dalsegno.count_task_wait(uuid) is
  'Recounts the predecessors of a task that have not ended, and ends its wait if that is over.';

create function dalsegno.begin_task_wait() returns trigger language plpgsql as $body$
begin
  perform dalsegno.count_task_wait(new.task_id);
  return null;
end
$body$;
comment on function dalsegno.begin_task_wait() is 'Counts at the commit, so that no end of a predecessor is missed.';

create constraint trigger task_waits_begin after insert on dalsegno.task_waits
  deferrable initially deferred for each row execute function dalsegno.begin_task_wait();

create function dalsegno.tell_waiting_tasks() returns trigger language plpgsql as $body$
#variable_conflict use_column
declare
  waiting uuid;
  counted record;
begin
  -- In the order of ids, as all transactions that hold several of these rows.
  for waiting in select d.task_id from dalsegno.task_dependencies as d where d.on_task_id = new.id order by d.task_id loop
    update dalsegno.task_waits as w set n_open = w.n_open + case when new.ended_at is null then 1 else -1 end
     where w.task_id = waiting and w.over_at is null
    returning w.n_open, w.on_failure into counted;
    if found and new.ended_at is not null
       and (counted.n_open <= 0 or (counted.on_failure = 'cancel' and new.state <> 'done')) then
      perform dalsegno.look_at_task_wait(waiting, new.ended_at);
    end if;
  end loop;
  if new.ended_at is not null then
    update dalsegno.task_waits as w set over_at = new.ended_at where w.task_id = new.id and w.over_at is null;
  end if;
  return null;
end
$body$;
comment on function dalsegno.tell_waiting_tasks() is
  'Counts down for each task that waits for this one, and releases those that wait for nothing else.';

create constraint trigger tasks_tell_waiting after update of ended_at on dalsegno.tasks
  deferrable initially deferred for each row when ((old.ended_at is null) <> (new.ended_at is null))
  execute function dalsegno.tell_waiting_tasks();

-------------------------------------------------------------------------------- the begin of a wait
create function dalsegno.wait_for_tasks(task_id uuid, depends_on uuid[], on_failure text default 'run', not_before timestamptz default null)
  returns void language plpgsql as $body$
#variable_conflict use_variable
declare
  own uuid;
  other record;
begin
  if on_failure is null or on_failure not in ('run', 'cancel') then
    raise exception using errcode = 'DS400', message = format('on_failure is %s', coalesce('`' || left(on_failure, 100) || '`', 'NULL')),
      hint = 'Use run (it is told of failures) or cancel.';
  end if;
  if cardinality(depends_on) > 1000 then
    raise exception using errcode = 'DS400', message = format('a task waits for at most 1000 others, not for %s', cardinality(depends_on)),
      hint = 'Let some of them wait for parts of them.';
  end if;
  select t.campaign_id into strict own from dalsegno.tasks as t where t.id = task_id;
  select d.id, t.id is null as is_unknown into other
    from unnest(depends_on) with ordinality as d (id, place) left join dalsegno.tasks as t on t.id = d.id
   where t.id is null or t.campaign_id <> own or t.id = task_id order by d.place limit 1;
  if found then
    raise exception using errcode = case when other.is_unknown then 'DS404' else 'DS400' end,
      message = format('there is no task %s in campaign %s that could be waited for', coalesce(other.id::text, 'NULL'), own),
      hint = 'A task waits for other tasks of its own campaign, which exist already: `dalsegno task ls` lists them.';
  end if;
  insert into dalsegno.task_dependencies (task_id, on_task_id, place)
  select task_id, d.id, min(d.place) from unnest(depends_on) with ordinality as d (id, place) group by d.id;
  insert into dalsegno.task_waits (task_id, on_failure, not_before) values (task_id, on_failure, not_before);
end
$body$;
comment on function dalsegno.wait_for_tasks(uuid, uuid[], text, timestamptz) is
  'Has a task that was just added, with a job that waits for a signal, wait for others of its campaign. Raises DS400 or DS404.';

create function dalsegno.wait_aside(waiting uuid) returns void language sql as $body$
  -- Recounted with locks when its flow is resumed. Without locks here: a transaction that ends a predecessor at this moment
  -- waits for this row, and counts down from the number written now.
  insert into dalsegno.task_waits as w (task_id) values (waiting)
  on conflict on constraint task_waits_pkey do update
     set over_at = null, not_before = null,
         n_open = (select count(*) from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
                    where d.task_id = waiting and t.ended_at is null)
   where w.over_at is not null
$body$;
comment on function dalsegno.wait_aside(uuid) is
  'Has a task wait whose job was put aside, for as long as its flow is paused. What a failure does to it stays.';

---------------------------------------------------------------------------------------------- flows
create function dalsegno.pause_flow(flow uuid, moment timestamptz) returns boolean language plpgsql as $body$
#variable_conflict use_column
declare
  task record;
begin
  update dalsegno.flows as f set paused_at = moment where f.id = flow and f.paused_at is null;
  if not found then
    return false;
  end if;
  -- A statement of its own: its snapshot includes the writes of a transaction that held the row of the flow.
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
comment on function dalsegno.pause_flow(uuid, timestamptz) is
  'Lets nothing of a flow begin any more; what has begun goes on. false: it is paused, or there is none.';

create function dalsegno.resume_flow(flow uuid) returns boolean language plpgsql as $body$
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
comment on function dalsegno.resume_flow(uuid) is 'Lets a paused flow go on. false: it is not paused, or there is none.';
