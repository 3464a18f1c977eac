-- Lets a cancellation leave no lock on a job that runs.
--
-- A cancellation that waited for a claim kept the lock on the row of the job, which runs by then, until its transaction ended. It locks the
-- task next, and a turn that ends locks its task before its job: a deadlock. A block with its own error handling gives the lock back.
create or replace function dalsegno.cancel(job_id bigint, reason text default '') returns text language plpgsql as $body$
#variable_conflict use_variable
declare
    gone   dalsegno.jobs;
    runner uuid;
begin
    begin
        -- A claim that is just happening makes this wait for a moment and then find nothing to delete.
        delete from dalsegno.jobs as j where j.id = job_id and j.state <> 'running' returning j.* into gone;
        if not found then
            raise exception using errcode = 'DS409', message = 'the job does not wait';
        end if;
    exception when sqlstate 'DS409' then
        gone := null;
    end;
    if gone.id is not null then
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
