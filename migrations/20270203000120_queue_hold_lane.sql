-- Holding and releasing a lane look for its head by the index of heads. Without the condition that it has a place in the lane, they read all jobs.

create or replace function dalsegno.hold_lane(lane text, reason text) returns boolean language plpgsql as $body$
#variable_conflict use_variable
declare
    target bigint;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'DS400', message = 'cannot hold the lane: no reason given', hint = 'Give a reason. It is shown with the held lane.';
    end if;
    update dalsegno.lanes as l set hold_reason = reason, held_at = clock_timestamp() where l.key = lane returning l.id into target;
    if not found then
        return false;
    end if;
    with back as (
        update dalsegno.jobs as j set state = 'blocked' where j.lane_id = target and j.lane_seq is not null and j.state = 'ready' returning j.queue, j.kind
    )
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select b.queue, b.kind, 'hold', 'ready', 'blocked', 1 from back as b;
    return true;
end
$body$;

create or replace function dalsegno.release_lane(lane text) returns boolean language plpgsql as $body$
#variable_conflict use_variable
declare
    target bigint;
    gone   dalsegno.jobs;
begin
    update dalsegno.lanes as l set hold_reason = null, held_at = null where l.key = lane returning l.id into target;
    if not found then
        return false;
    end if;
    delete from dalsegno.jobs as j where j.lane_id = target and j.lane_seq is not null and j.state = 'held' and j.hold_by = 'failure' returning j.* into gone;
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
