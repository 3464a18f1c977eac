-- Tasks that wait for others, parents with their children, and why a task was cancelled.
--
-- A task that waits has a job that waits for a signal. Whatever ends the last of the tasks that it waits for gives the signal, in
-- the transaction of that end: a trigger on ended_at, because tasks end in several statements and in binaries of several ages.
-- Its job is of a kind of its own, so that no binary takes it that would not tell it what the others came to.
--
-- Races, and who decides them:
--   * two of them end at once: n_open is counted down under the lock of the row; the second one finds the first one's count;
--   * one ends while the task that waits for it is being added: at its commit the addition locks all that it waits for, and
--     counts. An end that came before is counted, and one that comes after finds the committed rows;
--   * the task that waits is cancelled at the same moment: whoever signals passes over a job that is locked; a sweep looks again;
--   * one of them is put on the queue again: it counts again, if the wait is not over.
-- All of it happens at the commit, in triggers that are deferred: last in each transaction, so that no lock is held for long.

alter table dalsegno.tasks
  add column parent_id uuid constraint tasks_parent references dalsegno.tasks (id),
  add column continues_id uuid constraint tasks_continues references dalsegno.tasks (id),
  add column cancelled_because text;
create index tasks_by_parent on dalsegno.tasks (parent_id, id) where parent_id is not null;
create index tasks_by_continued on dalsegno.tasks (continues_id, id) where continues_id is not null;
comment on column dalsegno.tasks.parent_id is 'The task that handed this one out. Whoever cancels that one cancels this one.';
comment on column dalsegno.tasks.continues_id is
  'The task whose work this one takes up again in the same conversation, once all its children have ended.';
comment on column dalsegno.tasks.cancelled_because is
  'What was said by whoever asked to cancel it. It counts if the state is cancelled: a turn that runs may end before it is stopped.';

create table dalsegno.task_waits (
  task_id uuid not null
    constraint task_waits_pkey primary key
    constraint task_waits_task references dalsegno.tasks (id),
  not_before timestamptz,
  over_at timestamptz,
  n_open integer not null default 0,
  on_failure text not null default 'run'
    constraint task_waits_on_failure_known check (on_failure in ('run', 'cancel'))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500);
create index task_waits_not_over on dalsegno.task_waits (task_id) where over_at is null;
comment on table dalsegno.task_waits is 'One row per task that waits, or has waited, for others.';
comment on column dalsegno.task_waits.not_before is 'The moment that was asked for beside. NULL: none.';
comment on column dalsegno.task_waits.over_at is 'When it was let go, or ended without that. NULL: it waits.';
comment on column dalsegno.task_waits.n_open is 'How many of them have not ended. Counted at the commit that adds the row, and down from there.';
comment on column dalsegno.task_waits.on_failure is
  'run: it is told of failures and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled.';
comment on index dalsegno.task_waits_not_over is 'What the sweep looks through.';

create table dalsegno.task_dependencies (
  task_id uuid not null constraint task_dependencies_task references dalsegno.tasks (id),
  on_task_id uuid not null constraint task_dependencies_on_task references dalsegno.tasks (id),
  place integer not null,
  constraint task_dependencies_pkey primary key (task_id, place),
  constraint task_dependencies_unique unique (task_id, on_task_id),
  constraint task_dependencies_not_itself check (task_id <> on_task_id)
);
create index task_dependencies_by_predecessor on dalsegno.task_dependencies (on_task_id);
comment on table dalsegno.task_dependencies is
  'Which tasks a task waits for. A task can only name tasks that exist, so no circle can come about.';
comment on column dalsegno.task_dependencies.place is 'The order in which it is told what they came to.';

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
begin
  select * into wait from dalsegno.task_waits as w where w.task_id = waiting and w.over_at is null for update;
  if not found then
    return true;
  end if;
  select t.job_id, t.ended_at into own from dalsegno.tasks as t where t.id = waiting;
  if wait.on_failure = 'cancel' and own.ended_at is null then
    select format('task %s of %s/%s, which it waited for, %s', t.id, t.agent, t.instance,
                  case t.state when 'failed' then 'has failed' else 'was cancelled' end) into reason
      from dalsegno.task_dependencies as d join dalsegno.tasks as t on t.id = d.on_task_id
     where d.task_id = waiting and t.state in ('failed', 'cancelled') order by d.place limit 1;
  end if;
  if own.ended_at is null and wait.n_open > 0 and reason is null then
    return false;
  end if;
  if own.ended_at is null then
    -- Never waits: see the top of this file.
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
  'Counts anew how many of the tasks that a task waits for have not ended, and ends its wait if that is over.';

create function dalsegno.begin_task_wait() returns trigger language plpgsql as $body$
begin
  perform dalsegno.count_task_wait(new.task_id);
  return null;
end
$body$;
comment on function dalsegno.begin_task_wait() is 'Counts at the commit, when nothing that ends meanwhile can be missed.';
create constraint trigger task_waits_begin after insert on dalsegno.task_waits
  deferrable initially deferred for each row execute function dalsegno.begin_task_wait();

create function dalsegno.tell_waiting_tasks() returns trigger language plpgsql as $body$
#variable_conflict use_column
declare
  waiting uuid;
  counted record;
begin
  -- In the order of ids, as everybody who holds several of these rows.
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
comment on function dalsegno.tell_waiting_tasks() is 'Counts down for each task that waits for this one, and lets those go that wait for nothing else.';
create constraint trigger tasks_tell_waiting after update of ended_at on dalsegno.tasks
  deferrable initially deferred for each row when ((old.ended_at is null) <> (new.ended_at is null))
  execute function dalsegno.tell_waiting_tasks();

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
