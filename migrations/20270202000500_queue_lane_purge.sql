-- Lets dalsegno.enqueue() add a job for later to a lane that the purge deletes at that moment.
--
-- INSERT … ON CONFLICT DO NOTHING found the row that still existed, and the SELECT … FOR KEY SHARE after it waited until the purge had
-- committed. Then it found no row, and the call failed with P0002. Now it begins again.
create or replace function dalsegno.enqueue(
        kind            text,
        payload         jsonb       default '{}',
        queue           text        default 'default',
        lane            text        default null,
        group_key       text        default null,
        priority        integer     default 100,
        run_at          timestamptz default null,
        max_attempts    integer     default 20,
        idempotency_key text        default null,
        headers         jsonb       default null,
        timeout_secs    integer     default null,
        out job_id bigint, out created boolean, out state text)
    language plpgsql as $body$
#variable_conflict use_variable
declare
    moment     timestamptz := clock_timestamp();
    due        boolean     := coalesce(run_at <= moment, true);
    max_bytes  bigint      := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    print      bytea;
    known      dalsegno.idempotency_keys;
    lane_id    bigint;
    lane_seq   bigint;
    lane_held  boolean;
begin
    if dalsegno.is_bad_new_job(kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs, max_bytes) then
        perform dalsegno.check_new_job(kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs);
    end if;
    job_id  := nextval('dalsegno.job_ids');
    created := true;
    state   := case when due then 'ready' else 'scheduled' end;

    if idempotency_key is not null then
        print := sha256(convert_to(jsonb_build_array(kind, lane, payload)::text, 'UTF8'));
        -- Waits for another transaction that is about to take the key; then one of the two finds the other's row. Again, if
        -- the retention deletes that row before it is read.
        loop
            insert into dalsegno.idempotency_keys as i (key, job_id, fingerprint) values (idempotency_key, job_id, print)
            on conflict on constraint idempotency_keys_pkey do nothing;
            exit when found;
            select * into known from dalsegno.idempotency_keys as i where i.key = idempotency_key;
            continue when not found;
            if known.fingerprint <> print then
                raise exception using errcode = 'DS409',
                    message = format('idempotency key "%s" already stands for job %s with another kind, lane or payload', idempotency_key, known.job_id),
                    hint = 'Use a new key for a new job; repeat the same call to get the same job.';
            end if;
            job_id  := known.job_id;
            created := false;
            select j.state into state from dalsegno.jobs as j where j.id = known.job_id;
            state := coalesce(state, case when exists (select from dalsegno.dead_jobs as d where d.id = known.job_id) then 'dead' else 'ended' end);
            return;
        end loop;
    end if;

    if lane is not null and due then
        -- The lock on the lane lasts until the caller commits, so places follow commit order. The look at the other
        -- members is a statement of its own, with a snapshot from after the lock.
        insert into dalsegno.lanes as l (key, next_seq) values (lane, 2)
        on conflict on constraint lanes_key_unique do update set next_seq = l.next_seq + 1, used_at = moment
        returning l.id, l.next_seq - 1, l.hold_reason is not null into lane_id, lane_seq, lane_held;
        if lane_held then
            state := 'blocked';
        elsif lane_seq > 1 then
            -- Apart from the condition above: a plan for "no other member yet" would look like free of cost, and Postgres
            -- would go on planning every call anew.
            if exists (select from dalsegno.jobs as j where j.lane_id = lane_id and j.lane_seq is not null and j.state <> 'blocked')
                or exists (select from dalsegno.jobs as j where j.lane_id = lane_id and j.state = 'blocked') then
                state := 'blocked';
            end if;
        end if;
    elsif lane is not null then
        -- No place yet, hence no lock that others would wait for: KEY SHARE only keeps the row from being deleted. Again, if
        -- the purge deletes the row before it is locked. A lane that looks unused is touched, which a purge that is about to
        -- delete it notices.
        loop
            insert into dalsegno.lanes (key) values (lane) on conflict on constraint lanes_key_unique do nothing;
            select l.id into lane_id from dalsegno.lanes as l where l.key = lane for key share;
            exit when found;
        end loop;
        update dalsegno.lanes as l set used_at = moment where l.id = lane_id and l.used_at < moment - interval '1 hour';
    end if;

    insert into dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key, wait_reason)
    values (job_id, lane_id, lane_seq, case when due then moment else run_at end, moment, priority, max_attempts, state, queue, kind, group_key,
            case when not due then 'later' end);
    insert into dalsegno.job_payloads (job_id, timeout_secs, payload, headers) values (job_id, timeout_secs, payload, headers);
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values (queue, kind, 'enqueue', 'new', state, 1);
end
$body$;
