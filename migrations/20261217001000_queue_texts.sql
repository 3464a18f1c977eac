-- Holding a lane or a job: the hints in plain English. Only texts change.

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
        update dalsegno.jobs as j set state = 'blocked' where j.lane_id = target and j.state = 'ready' returning j.queue, j.kind
    )
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select b.queue, b.kind, 'hold', 'ready', 'blocked', 1 from back as b;
    return true;
end
$body$;

create or replace function dalsegno.hold_job(job_id bigint, reason text) returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    was record;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'DS400', message = 'cannot hold the job: no reason given', hint = 'Give a reason. It is shown with the held job.';
    end if;
    select j.state, j.queue, j.kind into was from dalsegno.jobs as j where j.id = job_id for update;
    if not found then
        raise exception using errcode = 'DS404', message = format('job %s is not on the queue', job_id), hint = 'It has ended, is a dead letter, or never existed.';
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
