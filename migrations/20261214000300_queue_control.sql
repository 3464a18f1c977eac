-- The job queue, control: cancelling, holding, releasing and retrying jobs, pauses, and jobs that wait for a signal.

--------------------------------------------------------------------------------------------- cancel
create function dalsegno.cancel(job_id bigint, reason text default '') returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    gone   dalsegno.jobs;
    runner uuid;
begin
    -- A claim that is just happening makes this wait for a moment and then find nothing to delete.
    delete from dalsegno.jobs as j where j.id = job_id and j.state <> 'running' returning j.* into gone;
    if found then
        delete from dalsegno.job_payloads as p where p.job_id = cancel.job_id;
        delete from dalsegno.cancel_requests as c where c.job_id = cancel.job_id;
        insert into dalsegno.runs (job_id, lease, lane_id, attempt, outcome, queue, kind, group_key, error)
        values (job_id, -nextval('dalsegno.leases'), gone.lane_id, gone.attempt, 'cancelled', gone.queue, gone.kind, gone.group_key, nullif(reason, ''));
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        values (gone.queue, gone.kind, 'cancel', gone.state, 'cancelled', 1);
        if gone.lane_seq is not null and gone.state <> 'blocked' then
            insert into dalsegno.lane_sweeps (lane_id) values (gone.lane_id);
            perform dalsegno.promote_lanes(array[gone.lane_id]);
        end if;
        return 'cancelled';
    end if;
    select j.worker_id into runner from dalsegno.jobs as j where j.id = job_id;
    if found then
        insert into dalsegno.cancel_requests as c (job_id, reason) values (cancel.job_id, coalesce(cancel.reason, ''))
        on conflict on constraint cancel_requests_pkey do nothing;
        perform pg_notify('dalsegno', format('cancel %s %s', runner, job_id));
        return 'requested';
    end if;
    return case when exists (select from dalsegno.dead_jobs as d where d.id = job_id) then 'dead'
                when exists (select from dalsegno.runs as r where r.job_id = cancel.job_id) then 'ended'
                else 'unknown' end;
end
$body$;
comment on function dalsegno.cancel(bigint, text) is
  'Cancels a job: at once (cancelled) if it does not run; a running one is asked to stop (requested). dead, ended, unknown: nothing to '
  'do.';

create function dalsegno.apply_cancel_requests(max_jobs integer default 500) returns integer language plpgsql as $body$
declare
    request record;
    done    integer := 0;
begin
    for request in
        select c.job_id, c.reason, j.id is null as gone
          from dalsegno.cancel_requests as c left join dalsegno.jobs as j on j.id = c.job_id
         where j.id is null or j.state <> 'running'
         order by c.job_id limit max_jobs for update of c skip locked
    loop
        if request.gone then
            delete from dalsegno.cancel_requests as c where c.job_id = request.job_id;
        else
            perform dalsegno.cancel(request.job_id, request.reason);
        end if;
        done := done + 1;
    end loop;
    return done;
end
$body$;
comment on function dalsegno.apply_cancel_requests(integer) is
  'For jobs that stopped running before their worker saw the request: cancels those that wait to run again, forgets the request of '
  'those that ended.';

----------------------------------------------------------------------------------- hold and release
create function dalsegno.hold_lane(lane text, reason text) returns boolean language plpgsql as $body$
#variable_conflict use_variable
declare
    target bigint;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'DS400', message = 'cannot hold the lane: no reason given', hint = 'Say why, for whoever finds it held.';
    end if;
    update dalsegno.lanes as l set hold_reason = reason, held_at = clock_timestamp() where l.key = lane returning l.id into target;
    if not found then
        return false;
    end if;
    with back as (
        update dalsegno.jobs as j set state = 'blocked' where j.lane_id = target and j.state = 'ready' returning j.queue, j.kind
    )
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select b.queue, b.kind, 'hold', 'ready', 'blocked', 1 from back as b;
    return true;
end
$body$;
comment on function dalsegno.hold_lane(text, text) is
  'Stops a lane after its running job. Its ready job steps back into the line. Waits for transactions that enqueue into this lane. '
  'false: no such lane.';

create function dalsegno.release_lane(lane text) returns boolean language plpgsql as $body$
#variable_conflict use_variable
declare
    target bigint;
    gone   dalsegno.jobs;
begin
    update dalsegno.lanes as l set hold_reason = null, held_at = null where l.key = lane returning l.id into target;
    if not found then
        return false;
    end if;
    delete from dalsegno.jobs as j where j.lane_id = target and j.state = 'held' and j.hold_by = 'failure' returning j.* into gone;
    if found then
        with payload as (
            delete from dalsegno.job_payloads as p where p.job_id = gone.id returning p.payload, p.headers, p.timeout_secs
        )
        insert into dalsegno.dead_jobs (id, lane_seq, enqueued_at, lease, timeout_secs, priority, attempt, max_attempts, crash_count,
                                        queue, kind, lane_key, group_key, reason, error, payload, headers)
        select gone.id, gone.lane_seq, gone.enqueued_at, coalesce((select max(r.lease) from dalsegno.runs as r where r.job_id = gone.id), 0), p.timeout_secs,
               gone.priority, gone.attempt, gone.max_attempts, gone.crash_count, gone.queue, gone.kind, lane, gone.group_key, 'failed', gone.hold_reason, p.payload, p.headers
          from payload as p;
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values (gone.queue, gone.kind, 'release', 'held', 'dead', 1);
    end if;
    perform dalsegno.promote_lanes(array[target]);
    return true;
end
$body$;
comment on function dalsegno.release_lane(text) is
  'Lets a held lane go on with its next job; a failed head that held it becomes a dead letter. false: no such lane.';

create function dalsegno.set_lane_policy(lane text, on_failure text) returns void language sql as $body$
    insert into dalsegno.lanes as l (key, on_failure) values (lane, set_lane_policy.on_failure)
    on conflict on constraint lanes_key_unique do update set on_failure = excluded.on_failure
$body$;
comment on function dalsegno.set_lane_policy(text, text) is
  'Sets the effect of a dead head on this lane: continue or hold. A handler''s own policy "hold" wins.';

create function dalsegno.hold_job(job_id bigint, reason text) returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    was record;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'DS400', message = 'cannot hold the job: no reason given', hint = 'Say why, for whoever finds it held.';
    end if;
    select j.state, j.queue, j.kind into was from dalsegno.jobs as j where j.id = job_id for update;
    if not found then
        raise exception using errcode = 'DS404', message = format('job %s is not on the queue', job_id), hint = 'It has ended, is a dead letter, or never was.';
    elsif was.state = 'running' then
        raise exception using errcode = 'DS409', message = format('job %s is running', job_id), hint = 'Cancel it, or hold its lane.';
    elsif was.state = 'held' then
        return 'held';
    end if;
    update dalsegno.jobs as j set hold_reason = reason, hold_by = 'person', state = case j.state when 'ready' then 'held' else j.state end where j.id = job_id;
    if was.state = 'ready' then
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values (was.queue, was.kind, 'hold', 'ready', 'held', 1);
        return 'held';
    end if;
    return was.state;
end
$body$;
comment on function dalsegno.hold_job(bigint, text) is
  'Holds a job for a person: at once if it is ready, else when its turn comes. A held head holds up its lane. Returns the state it is '
  'in now.';

create function dalsegno.release_job(job_id bigint) returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    was  record;
    next text;
begin
    select j.state, j.queue, j.kind, j.lane_id, j.hold_by, j.hold_reason into was from dalsegno.jobs as j where j.id = job_id for update;
    if not found then
        raise exception using errcode = 'DS404', message = format('job %s is not on the queue', job_id), hint = 'It has ended, is a dead letter, or never was.';
    elsif was.hold_reason is null then
        raise exception using errcode = 'DS409', message = format('job %s is not held', job_id), hint = 'Look at it with job show; its lane may be held instead.';
    end if;
    -- A member of a lane steps back to the front of the line; the line decides, under the lock of the lane, whether it may go.
    next := case when was.state <> 'held' then was.state when was.lane_id is null then 'ready' else 'blocked' end;
    update dalsegno.jobs as j
       set hold_reason = null, hold_by = null, state = next,
           run_at      = case when was.state = 'held' then clock_timestamp() else j.run_at end,
           attempt     = case when was.hold_by = 'failure' then 0 else j.attempt end,
           crash_count = case when was.hold_by = 'failure' then 0 else j.crash_count end
     where j.id = job_id;
    if was.state = 'held' then
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values (was.queue, was.kind, 'release', 'held', next, 1);
    end if;
    if next = 'blocked' then
        insert into dalsegno.lane_sweeps (lane_id) values (was.lane_id);
        perform dalsegno.promote_lanes(array[was.lane_id]);
    end if;
    return (select j.state from dalsegno.jobs as j where j.id = job_id);
end
$body$;
comment on function dalsegno.release_job(bigint) is
  'Lets a held job go on; one that was held because it failed starts with fresh attempts. Returns its new state.';

---------------------------------------------------------------------------------------------- retry
create function dalsegno.retry(job_id bigint) returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    dead  dalsegno.dead_jobs;
    now_  dalsegno.jobs;
    place record;
begin
    delete from dalsegno.dead_jobs as d where d.id = job_id returning d.* into dead;
    if found then
        if dead.lane_key is not null then
            insert into dalsegno.lanes as l (key, next_seq) values (dead.lane_key, 2)
            on conflict on constraint lanes_key_unique do update set next_seq = l.next_seq + 1, used_at = clock_timestamp()
            returning l.id, l.next_seq - 1 as seq into place;
            insert into dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key)
            values (job_id, place.id, place.seq, clock_timestamp(), dead.enqueued_at, dead.priority, dead.max_attempts, 'blocked', dead.queue, dead.kind, dead.group_key);
        else
            insert into dalsegno.jobs (id, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key)
            values (job_id, clock_timestamp(), dead.enqueued_at, dead.priority, dead.max_attempts, 'ready', dead.queue, dead.kind, dead.group_key);
        end if;
        insert into dalsegno.job_payloads (job_id, timeout_secs, payload, headers) values (job_id, dead.timeout_secs, dead.payload, dead.headers);
        -- A request to cancel the run that died does not mean this one.
        delete from dalsegno.cancel_requests as c where c.job_id = retry.job_id;
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        values (dead.queue, dead.kind, 'redrive', 'dead', case when dead.lane_key is null then 'ready' else 'blocked' end, 1);
        if dead.lane_key is not null then
            perform dalsegno.promote_lanes(array[place.id]);
        end if;
        return (select j.state from dalsegno.jobs as j where j.id = job_id);
    end if;

    select * into now_ from dalsegno.jobs as j where j.id = job_id for update;
    if not found then
        raise exception using errcode = 'DS404', message = format('job %s is neither on the queue nor a dead letter', job_id), hint = 'It has ended; enqueue a new one.';
    elsif now_.state = 'held' and now_.hold_by = 'failure' then
        return dalsegno.release_job(job_id);
    elsif now_.state = 'scheduled' then
        update dalsegno.jobs as j set run_at = clock_timestamp() where j.id = job_id;
        perform dalsegno.promote_due();
        return (select j.state from dalsegno.jobs as j where j.id = job_id);
    end if;
    return now_.state;
end
$body$;
comment on function dalsegno.retry(bigint) is
  'Runs a dead, failed-and-held or waiting job again: dead letters with fresh attempts, at the end of their lane because the lane has '
  'gone on; scheduled jobs at once. Returns the new state.';

--------------------------------------------------------------------------------------------- pauses
create function dalsegno.pause(scope text, name text, reason text default '') returns void language sql as $body$
    insert into dalsegno.pauses (scope, name, reason) values (pause.scope, pause.name, coalesce(pause.reason, ''))
    on conflict on constraint pauses_pkey do update set reason = excluded.reason
$body$;
comment on function dalsegno.pause(text, text, text) is
  'pause(''queue'' or ''group'', name, reason): nothing more is claimed from it; what runs goes on.';

create function dalsegno.resume(scope text, name text) returns boolean language plpgsql as $body$
declare
    was_paused boolean;
begin
    delete from dalsegno.pauses as p where p.scope = resume.scope and p.name = resume.name;
    was_paused := found;
    if was_paused then
        perform pg_notify('dalsegno', case when resume.scope = 'queue' then 'ready ' || resume.name else 'ready *' end);
    end if;
    return was_paused;
end
$body$;
comment on function dalsegno.resume(text, text) is 'Ends a pause and wakes the workers. false: it was not paused.';

-------------------------------------------------------------------------------------------- signals
-- A job that waits for a signal is scheduled without a moment of its own, until the application says that it may run. In everything
-- but its moment it is a job for `later`: it has no slot, no place in its lane, and delays no other job.
--
-- Nothing here waits for a lock. A transaction that signals also ends something else; it must not wait for a person who is about to
-- cancel the job, nor for an application that has added to its lane and not committed.

create function dalsegno.never() returns timestamptz language sql immutable parallel safe as $body$
  -- No infinity: few drivers can read one.
  select timestamptz '9999-12-31 00:00:00+00'
$body$;
comment on function dalsegno.never() is 'When a job is due that waits for a signal.';

create function dalsegno.await_signal(job_ids bigint[]) returns integer language plpgsql as $body$
declare
  n_jobs integer;
begin
  update dalsegno.jobs as j set wait_reason = 'signal', run_at = dalsegno.never()
   where j.id = any (job_ids) and j.state = 'scheduled' and j.wait_reason = 'later';
  get diagnostics n_jobs = row_count;
  return n_jobs;
end
$body$;
comment on function dalsegno.await_signal(bigint[]) is
  'Makes jobs that were just enqueued for dalsegno.never() wait for dalsegno.signal() instead of a moment. Returns how many wait.';

create function dalsegno.signal(job_ids bigint[], not_before timestamptz default null) returns integer language plpgsql as $body$
declare
  moment timestamptz := greatest(not_before, clock_timestamp());
  told bigint[];
begin
  told := array(select j.id from dalsegno.jobs as j where j.id = any (job_ids) and j.wait_reason = 'signal'
                 order by j.id for update skip locked);
  if told = '{}' then
    return 0;
  end if;
  update dalsegno.jobs as j set wait_reason = 'later', run_at = moment where j.id = any (told);
  if not_before is null or not_before <= clock_timestamp() then
    -- A lane that is busy takes them with the next look of upkeep.
    perform dalsegno.promote_due();
  end if;
  return cardinality(told);
end
$body$;
comment on function dalsegno.signal(bigint[], timestamptz) is
  'Lets jobs that wait for a signal run, not before the given moment. Skips jobs that are locked by others. Returns the number of jobs '
  'that were signalled.';

create function dalsegno.lock_waiting(job_id bigint) returns text language plpgsql as $body$
begin
  perform from dalsegno.jobs as j where j.id = job_id and j.wait_reason = 'signal' for update skip locked;
  if found then
    return 'locked';
  end if;
  return case when exists (select from dalsegno.jobs as j where j.id = job_id and j.wait_reason = 'signal') then 'busy' else 'over' end;
end
$body$;
comment on function dalsegno.lock_waiting(bigint) is
  'Locks a job that waits for dalsegno.signal(), before its caller decides what becomes of it: locked; busy where another transaction '
  'has the lock; over where the job does not wait for a signal.';

create function dalsegno.is_conflicting_key(key text, kind text, lane text, payload jsonb) returns boolean language plpgsql stable as $body$
begin
  return exists (select from dalsegno.idempotency_keys as i
                  where i.key = is_conflicting_key.key
                    and i.fingerprint <> sha256(convert_to(jsonb_build_array(kind, lane, payload)::text, 'UTF8')));
end
$body$;
comment on function dalsegno.is_conflicting_key(text, text, text, jsonb) is
  'True if an idempotency key stands for a job of another kind, lane or payload, which dalsegno.enqueue() refuses.';

create function dalsegno.is_job_about(job_id bigint, name text, value text) returns boolean language plpgsql stable
set search_path = pg_catalog, pg_temp as $body$
begin
  return exists (select from dalsegno.jobs as j join dalsegno.job_payloads as p on p.job_id = j.id
                  where j.id = is_job_about.job_id and value in (j.group_key, p.payload ->> name))
      or exists (select from dalsegno.dead_jobs as d where d.id = is_job_about.job_id and value in (d.group_key, d.payload ->> name));
end
$body$;
comment on function dalsegno.is_job_about(bigint, text, text) is
  'True if a job that has not ended, or a dead one, has this value as its group or under this name in its payload.';

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
  'Makes jobs that have not begun, and that no person holds, wait for dalsegno.signal(). They lose their place in the lane. Returns how '
  'many.';
