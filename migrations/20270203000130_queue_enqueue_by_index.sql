-- Adding a job to a lane looks for other members by the indexes of lanes. If most jobs belonged to a few lanes, the planner expected that any row
-- would do, and the look into a lane without members read all jobs. The order makes each look one step in its index; the range (between) keeps
-- the order, which an equality would make needless. OFFSET 0, because EXISTS drops an order otherwise.
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
            if exists (select from dalsegno.jobs as j
                   where j.lane_id between lane_id and lane_id and j.lane_seq is not null and j.state <> 'blocked' order by j.lane_id offset 0)
                or exists (select from dalsegno.jobs as j
                       where j.lane_id between lane_id and lane_id and j.state = 'blocked' order by j.lane_id offset 0) then
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

create or replace function dalsegno.enqueue_many(jobs jsonb) returns table (ord bigint, job_id bigint, created boolean, state text)
    language plpgsql set plan_cache_mode = force_custom_plan set jit = off set work_mem = '64MB' as $body$
#variable_conflict use_column
-- The settings cost one call nothing and a large one a quarter: compiling takes longer than running, and the arrays, which
-- are in memory anyway, would go through files to be sorted.
declare
    moment timestamptz := clock_timestamp();
    max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    ids bigint[];  kinds text[];  payloads jsonb[];  queues text[];  lanes text[];  groups text[];  priorities integer[];
    run_ats timestamptz[];  maxima integer[];  keys text[];  heads jsonb[];  timeouts integer[];
    owners bigint[];
    lane_keys text[];  lane_ids bigint[];  lane_ends bigint[];  lane_busy boolean[];
    bad record;  problem text;  advice text;
begin
    if enqueue_many.jobs is null or jsonb_typeof(enqueue_many.jobs) <> 'array' then
        raise exception using errcode = 'DS400', message = 'cannot enqueue: jobs is not a JSON array',
            hint = 'Pass an array of objects whose keys are the arguments of dalsegno.enqueue.';
    end if;
    -- The payload is taken from the element itself: a record would make the JSON null, which is a payload, an SQL NULL.
    begin
        select array_agg(nextval('dalsegno.job_ids')), array_agg(r.kind), array_agg(coalesce(r.element -> 'payload', '{}')), array_agg(coalesce(r.queue, 'default')),
               array_agg(r.lane), array_agg(r.group_key), array_agg(coalesce(r.priority, 100)),
               array_agg(r.run_at), array_agg(coalesce(r.max_attempts, 20)), array_agg(r.idempotency_key), array_agg(r.headers), array_agg(r.timeout_secs)
          into ids, kinds, payloads, queues, lanes, groups, priorities, run_ats, maxima, keys, heads, timeouts
          from rows from (
                   jsonb_to_recordset(enqueue_many.jobs) as (kind text, queue text, lane text, group_key text, priority integer,
                       run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer),
                   jsonb_array_elements(enqueue_many.jobs))
               as r (kind, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs, element);
    exception when data_exception then
        -- Some value has the wrong type. Postgres does not say which, so the elements are tried one by one.
        problem := 'cannot enqueue: ' || sqlerrm;
        for bad in select e.element, e.ord from jsonb_array_elements(enqueue_many.jobs) with ordinality as e (element, ord) loop
            if jsonb_typeof(bad.element) <> 'object' then
                problem := format('element %s: cannot enqueue: it is a JSON %s, not an object', bad.ord, jsonb_typeof(bad.element));
                exit;
            end if;
            begin
                perform from jsonb_to_record(bad.element) as r (kind text, queue text, lane text, group_key text, priority integer,
                    run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer);
            exception when data_exception then
                problem := format('element %s: cannot enqueue: %s', bad.ord, sqlerrm);
                exit;
            end;
        end loop;
        raise exception using errcode = 'DS400', message = problem,
            hint = 'Give each value the type that the argument of that name has in dalsegno.enqueue.';
    end;
    if ids is null then
        return;
    end if;
    -- A misspelt name would silently mean its default.
    select e.ord, k.name into bad
      from jsonb_array_elements(enqueue_many.jobs) with ordinality as e (element, ord)
     cross join lateral jsonb_object_keys(e.element - '{kind,payload,queue,lane,group_key,priority,run_at,max_attempts,idempotency_key,headers,timeout_secs}'::text[]) as k (name)
     order by e.ord, k.name limit 1;
    if found then
        raise exception using errcode = 'DS400', message = format('element %s: cannot enqueue: unknown key "%s"', bad.ord, bad.name),
            hint = 'The keys are the arguments of dalsegno.enqueue: kind, payload, queue, lane, group_key, priority, run_at, max_attempts, idempotency_key, headers, timeout_secs.';
    end if;

    -- One cheap pass finds the first suspect; the function that also guards single jobs words the error.
    for bad in
        select * from unnest(kinds, payloads, queues, lanes, groups, priorities, run_ats, maxima, keys, heads, timeouts) with ordinality
            as u (kind, payload, queue, lane, group_key, priority, run_at, max_attempts, key, headers, timeout_secs, ord)
         where dalsegno.is_bad_new_job(u.kind, u.payload, u.queue, u.lane, u.group_key, u.priority, u.run_at, u.max_attempts,
                                       u.key, u.headers, u.timeout_secs, max_bytes)
         order by u.ord limit 1
    loop
        begin
            perform dalsegno.check_new_job(bad.kind, bad.payload, bad.queue, bad.lane, bad.group_key, bad.priority, bad.run_at, bad.max_attempts,
                                           bad.key, bad.headers, bad.timeout_secs);
        exception when sqlstate 'DS400' or sqlstate 'DS413' then
            get stacked diagnostics problem = message_text, advice = pg_exception_hint;
            raise exception using errcode = sqlstate, message = format('element %s: %s', bad.ord, problem), hint = advice;
        end;
    end loop;

    -- owners: per job the job that its key stands for; itself, if the key is new or there is none.
    owners := ids;
    if exists (select from unnest(keys) as k (key) where k.key is not null) then
        insert into dalsegno.idempotency_keys as i (key, job_id, fingerprint)
        select distinct on (u.key) u.key, u.id, sha256(convert_to(jsonb_build_array(u.kind, u.lane, u.payload)::text, 'UTF8'))
          from unnest(ids, keys, kinds, lanes, payloads) as u (id, key, kind, lane, payload)
         where u.key is not null order by u.key, u.id
        on conflict on constraint idempotency_keys_pkey do nothing;
        select u.key, i.job_id into bad
          from unnest(ids, keys, kinds, lanes, payloads) as u (id, key, kind, lane, payload)
          join dalsegno.idempotency_keys as i on i.key = u.key
         where i.fingerprint <> sha256(convert_to(jsonb_build_array(u.kind, u.lane, u.payload)::text, 'UTF8'))
         order by u.id limit 1;
        if found then
            raise exception using errcode = 'DS409',
                message = format('idempotency key "%s" already stands for job %s with another kind, lane or payload', bad.key, bad.job_id),
                hint = 'Use a new key for a new job; repeat the same call to get the same job.';
        end if;
        select array_agg(coalesce(i.job_id, u.id) order by u.ord) into owners
          from unnest(ids, keys) with ordinality as u (id, key, ord) left join dalsegno.idempotency_keys as i on i.key = u.key;
    end if;

    -- Lanes are locked in the order of their names, so that two bulk calls cannot wait for each other in a circle.
    if exists (select from unnest(lanes) as l (key) where l.key is not null) then
        with raised as (
            insert into dalsegno.lanes as l (key, next_seq)
            select u.lane, 1 + count(*) filter (where u.run_at is null or u.run_at <= moment)
              from unnest(ids, owners, lanes, run_ats) as u (id, owner, lane, run_at)
             where u.lane is not null and u.id = u.owner group by u.lane order by u.lane
            on conflict on constraint lanes_key_unique do update set next_seq = l.next_seq + excluded.next_seq - 1, used_at = moment
            returning l.id, l.key, l.next_seq, l.hold_reason is not null as held)
        select array_agg(r.key), array_agg(r.id), array_agg(r.next_seq), array_agg(r.held) into lane_keys, lane_ids, lane_ends, lane_busy from raised as r;
        select array_agg(u.held
                   or exists (select from dalsegno.jobs as j
                          where j.lane_id between u.id and u.id and j.lane_seq is not null and j.state <> 'blocked' order by j.lane_id offset 0)
                   or exists (select from dalsegno.jobs as j
                          where j.lane_id between u.id and u.id and j.state = 'blocked' order by j.lane_id offset 0) order by u.ord)
          into lane_busy from unnest(lane_ids, lane_busy) with ordinality as u (id, held, ord);
    end if;

    return query
    with placed as materialized (
        select u.*, u.run_at is null or u.run_at <= moment as due, l.lane_id, l.lane_end, l.busy,
               row_number() over (partition by u.lane, u.run_at is null or u.run_at <= moment order by u.ord) as place,
               count(*) over (partition by u.lane, u.run_at is null or u.run_at <= moment) as places
          from unnest(ids, owners, kinds, queues, lanes, groups, priorities, run_ats, maxima) with ordinality
                   as u (id, owner, kind, queue, lane, group_key, priority, run_at, max_attempts, ord)
          left join unnest(lane_keys, lane_ids, lane_ends, lane_busy) as l (lane_key, lane_id, lane_end, busy) on l.lane_key = u.lane
         where u.id = u.owner
    ), added as (
        insert into dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key, wait_reason)
        select p.id, p.lane_id, case when p.due then p.lane_end - p.places + p.place - 1 end,
               case when p.due then moment else p.run_at end, moment, p.priority, p.max_attempts,
               case when not p.due then 'scheduled' when p.lane_id is null or (p.place = 1 and not p.busy) then 'ready' else 'blocked' end,
               p.queue, p.kind, p.group_key, case when not p.due then 'later' end
          from placed as p order by p.ord
        returning id, queue, kind, state
    ), stored as (
        insert into dalsegno.job_payloads (job_id, timeout_secs, payload, headers)
        select u.id, u.timeout_secs, u.payload, u.headers
          from unnest(ids, owners, payloads, heads, timeouts) as u (id, owner, payload, headers, timeout_secs) where u.id = u.owner
    ), counted as (
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        select a.queue, a.kind, 'enqueue', 'new', a.state, count(*) from added as a group by a.queue, a.kind, a.state
    )
    select u.ord, u.owner, u.id = u.owner,
           coalesce(a.state, (select j.state from dalsegno.jobs as j where j.id = u.owner),
                    (select 'dead' from dalsegno.dead_jobs as d where d.id = u.owner), 'ended')
      from unnest(ids, owners) with ordinality as u (id, owner, ord) left join added as a on a.id = u.owner
     order by u.ord;
end
$body$;
