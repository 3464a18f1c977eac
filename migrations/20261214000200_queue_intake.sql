-- The job queue, intake: adding jobs, and moving waiting jobs to the head of their lane.
--
-- Every function counts the changes of state that it makes in dalsegno.transition_deltas. None waits for a busy lane unless it adds a
-- member to it: a promotion that is owed to a busy lane is listed in dalsegno.lane_sweeps.

------------------------------------------------------------------------------------- waking workers
-- Wakes a worker that says it waits. Deferred, so that it looks just before the commit: a worker that became idle while an
-- application's transaction was open is seen. The gap between this look and the end of the commit is covered by the worker's
-- second look and by polling.
create function dalsegno.wake_waiting_worker() returns trigger language plpgsql as $body$
begin
    if exists (select from dalsegno.workers as w where w.waiting and new.queue = any (w.queues)) then
        perform pg_notify('dalsegno', 'ready ' || new.queue);
    end if;
    return null;
end
$body$;
comment on function dalsegno.wake_waiting_worker() is
  'NOTIFY only if a worker waits: a notification in every transaction would serialise all commits.';

create constraint trigger transition_deltas_wake after insert on dalsegno.transition_deltas
  deferrable initially deferred for each row when (new.to_state = 'ready')
  execute function dalsegno.wake_waiting_worker();
comment on trigger transition_deltas_wake on dalsegno.transition_deltas is
  'One look per statement that made jobs ready, not one per job.';

------------------------------------------------------------------------------------------ promotion
create function dalsegno.promote_lanes(lanes bigint[]) returns integer language plpgsql
    set plan_cache_mode = force_generic_plan set jit = off as $body$
#variable_conflict use_column
declare
    mine     bigint[];
    promoted integer;
begin
    -- Never waits: a busy lane stays listed in lane_sweeps for the next caller.
    mine := array(select l.id from dalsegno.lanes as l where l.id = any (promote_lanes.lanes)
                   order by l.id for no key update skip locked);
    -- First the entries, then the lanes: the change that a deleted entry was written for is visible to the statement below.
    delete from dalsegno.lane_sweeps as s where s.lane_id = any (mine);
    with first as (
        select l.id as lane_id, b.id
          from dalsegno.lanes as l
         cross join lateral (select j.id from dalsegno.jobs as j where j.lane_id = l.id and j.state = 'blocked'
                              order by j.lane_seq limit 1) as b
         where l.id = any (mine) and l.hold_reason is null
           and not exists (select from dalsegno.jobs as h where h.lane_id = l.id and h.lane_seq is not null and h.state <> 'blocked')
    ), free as (
        select f.lane_id, f.id
          from first as f
         cross join lateral (select from dalsegno.jobs as j where j.id = f.id and j.state = 'blocked' for update skip locked) as locked
    ), changed as (
        update dalsegno.jobs as j
           set state = case when j.hold_reason is null then 'ready' else 'held' end, run_at = clock_timestamp()
         where j.id = any (array(select f.id from free as f))
        returning j.queue, j.kind, j.state
    ), busy as (
        -- Another transaction is about to cancel the next one; its commit decides whether it stays.
        insert into dalsegno.lane_sweeps (lane_id)
        select f.lane_id from first as f where not exists (select from free where free.id = f.id)
    ), counted as (
        insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
        select c.queue, c.kind, 'promote', 'blocked', c.state, count(*) from changed as c group by c.queue, c.kind, c.state
    )
    select count(*) into promoted from changed;
    return promoted;
end
$body$;
comment on function dalsegno.promote_lanes(bigint[]) is
  'Makes the next job of each given lane ready if the lane has no head and is not held. Skips lanes whose row is busy. Returns how many '
  'jobs moved.';

create function dalsegno.sweep_lanes(max_lanes integer default 1000) returns integer language sql as $body$
    select dalsegno.promote_lanes(array(select distinct s.lane_id from dalsegno.lane_sweeps as s order by s.lane_id limit max_lanes))
$body$;
comment on function dalsegno.sweep_lanes(integer) is 'dalsegno.promote_lanes() for the lanes listed in dalsegno.lane_sweeps.';

create function dalsegno.promote_due(max_jobs integer default 1000) returns integer language plpgsql
    set plan_cache_mode = force_generic_plan set jit = off as $body$
#variable_conflict use_column
declare
    -- A variable, because a volatile function in the condition would be compared with every entry of the index.
    moment timestamptz := clock_timestamp();
    due    bigint[];
    taken  bigint[];
begin
    due := array(select j.id from dalsegno.jobs as j where j.state = 'scheduled' and j.run_at <= moment
                  order by j.run_at, j.id limit max_jobs for update skip locked);
    if due = '{}' then
        return 0;
    end if;
    -- Jobs that have waited outside their lane take a place now; a busy lane puts them off by a second, so that they
    -- cannot fill the window of due jobs for ever.
    taken := array(select l.id from dalsegno.lanes as l
                    where l.id = any (array(select j.lane_id from dalsegno.jobs as j where j.id = any (due) and j.lane_seq is null))
                    order by l.id for no key update skip locked);
    -- Joined by one key each: a second condition with the whole array would make the planner look up all of it for each row.
    with placed as (
        select j.id, j.lane_id, l.next_seq + row_number() over (partition by j.lane_id order by j.run_at, j.id) - 1 as place
          from dalsegno.jobs as j
         cross join lateral (select l.next_seq from dalsegno.lanes as l where l.id = j.lane_id offset 0) as l
         where j.id = any (due) and j.lane_seq is null and j.lane_id = any (taken)
    ), raised as (
        update dalsegno.lanes as l set next_seq = l.next_seq + p.n, used_at = clock_timestamp()
          from (select lane_id, count(*) as n from placed group by lane_id) as p
         where l.id = p.lane_id
    ), changed as (
        -- Place and state in one go: scheduled with a place would be a second head.
        update dalsegno.jobs as j set lane_seq = p.place, state = 'blocked', wait_reason = null
          from placed as p
         where j.id = p.id
        returning j.queue, j.kind, j.lane_id
    ), owed as (
        insert into dalsegno.lane_sweeps (lane_id) select distinct c.lane_id from changed as c
    )
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select c.queue, c.kind, 'due', 'scheduled', 'blocked', count(*) from changed as c group by c.queue, c.kind;
    update dalsegno.jobs as j set run_at = clock_timestamp() + interval '1 second'
     where j.id = any (due) and j.lane_id is not null and j.lane_seq is null;
    with changed as (
        update dalsegno.jobs as j
           set state = case when j.lane_id is not null then 'blocked' when j.hold_reason is null then 'ready' else 'held' end,
               wait_reason = null, run_at = clock_timestamp()
         where j.id = any (due) and j.state = 'scheduled' and (j.lane_id is null or j.lane_seq is not null)
        returning j.queue, j.kind, j.state, j.lane_id
    ), owed as (
        insert into dalsegno.lane_sweeps (lane_id) select distinct c.lane_id from changed as c where c.lane_id is not null
    )
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    select c.queue, c.kind, 'due', 'scheduled', c.state, count(*) from changed as c group by c.queue, c.kind, c.state;
    perform dalsegno.promote_lanes(array(select distinct j.lane_id from dalsegno.jobs as j
                                          where j.id = any (due) and j.state = 'blocked'));
    return cardinality(due);
end
$body$;
comment on function dalsegno.promote_due(integer) is
  'Makes scheduled jobs whose time has come ready; members of a lane queue up in it (a head that waited to be retried is the first '
  'again). Any process may call it at any time.';

-------------------------------------------------------------------------------------------- enqueue
create function dalsegno.is_bad_new_job(kind text, payload jsonb, queue text, lane text, group_key text, priority integer,
        run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer, max_bytes bigint)
    returns boolean language sql immutable parallel safe as $body$
    select kind is null or btrim(kind) = '' or char_length(kind) > 100
        or queue is null or btrim(queue) = '' or char_length(queue) > 100
        or lane = '' or char_length(lane) > 200
        or group_key = '' or char_length(group_key) > 200
        or priority is null or priority not between 0 and 32767
        or max_attempts is null or max_attempts not between 1 and 1000
        -- Later, programs cannot read the moment. A moment of the past means now.
        or not isfinite(run_at) or run_at > timestamptz '9999-12-31 23:59:59+00'
        or timeout_secs <= 0
        or idempotency_key = '' or char_length(idempotency_key) > 200
        or jsonb_typeof(headers) <> 'object'
        or payload is null or octet_length(payload::text) > max_bytes
$body$;
comment on function dalsegno.is_bad_new_job(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer, bigint) is
  'True if dalsegno.check_new_job() has something to say about these arguments (otherwise false or NULL). One plain expression, which '
  'Postgres puts in place of the call: the good case runs no query.';

create function dalsegno.check_new_job(kind text, payload jsonb, queue text, lane text, group_key text, priority integer,
        run_at timestamptz, max_attempts integer, idempotency_key text, headers jsonb, timeout_secs integer)
    returns void language plpgsql stable as $body$
declare
    max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_payload_bytes', true), '')::bigint, 1048576);
    problem   text;
    hint      text;
begin
    case
        when kind is null or btrim(kind) = '' then
            problem := 'kind is empty'; hint := 'Name the kind of a handler.';
        when char_length(kind) > 100 then
            problem := format('kind has %s characters, the limit is 100', char_length(kind)); hint := 'Use a shorter name.';
        when queue is null or btrim(queue) = '' then
            problem := 'queue is empty'; hint := 'Leave it out for the queue "default".';
        when char_length(queue) > 100 then
            problem := format('queue has %s characters, the limit is 100', char_length(queue)); hint := 'Use a shorter name.';
        when lane = '' then
            problem := 'lane is the empty string'; hint := 'Pass NULL for a job without a lane.';
        when char_length(lane) > 200 then
            problem := format('lane has %s characters, the limit is 200', char_length(lane)); hint := 'Use an id or a hash as the name of the lane.';
        when group_key = '' then
            problem := 'group_key is the empty string'; hint := 'Pass NULL for a job without a group.';
        when char_length(group_key) > 200 then
            problem := format('group_key has %s characters, the limit is 200', char_length(group_key)); hint := 'Use an id or a hash.';
        when priority is null or priority not between 0 and 32767 then
            problem := format('priority is %s', coalesce(priority::text, 'NULL')); hint := 'Use 0 (most urgent) to 32767; 100 is usual.';
        when max_attempts is null or max_attempts not between 1 and 1000 then
            problem := format('max_attempts is %s', coalesce(max_attempts::text, 'NULL')); hint := 'Use 1 to 1000.';
        when not isfinite(run_at) or run_at > timestamptz '9999-12-31 23:59:59+00' then
            problem := format('run_at is %s', run_at); hint := 'Pass a time up to the year 9999, or NULL for now.';
        when timeout_secs <= 0 then
            problem := format('timeout_secs is %s', timeout_secs); hint := 'Use a positive number of seconds, or NULL for the policy of the kind.';
        when idempotency_key = '' then
            problem := 'idempotency_key is the empty string'; hint := 'Pass NULL for none.';
        when char_length(idempotency_key) > 200 then
            problem := format('idempotency_key has %s characters, the limit is 200', char_length(idempotency_key)); hint := 'Use a hash of it.';
        when headers is not null and jsonb_typeof(headers) <> 'object' then
            problem := format('headers is a JSON %s', jsonb_typeof(headers)); hint := 'Pass an object of names and values, or NULL.';
        when payload is null then
            problem := 'payload is NULL'; hint := 'Pass ''{}'' or ''null''::jsonb for a job without input.';
        when octet_length(payload::text) > max_bytes then
            raise exception using errcode = 'DS413', message = format('payload of %s has %s bytes, the limit is %s', kind, octet_length(payload::text), max_bytes),
                hint = 'Store the data elsewhere and enqueue a reference, or raise dalsegno.max_payload_bytes.';
        else
            return;
    end case;
    raise exception using errcode = 'DS400', message = 'cannot enqueue: ' || problem, hint = hint;
end
$body$;
comment on function dalsegno.check_new_job(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer) is
  'Raises DS400 (bad argument) or DS413 (payload over dalsegno.max_payload_bytes, 1 MiB by default).';

create function dalsegno.enqueue(
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
        -- No place yet, hence no lock that others would wait for: KEY SHARE only keeps the row from being deleted. A lane
        -- that looks unused is touched, which a purge that is about to delete it notices.
        insert into dalsegno.lanes (key) values (lane) on conflict on constraint lanes_key_unique do nothing;
        select l.id into strict lane_id from dalsegno.lanes as l where l.key = lane for key share;
        update dalsegno.lanes as l set used_at = moment where l.id = lane_id and l.used_at < moment - interval '1 hour';
    end if;

    insert into dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, priority, max_attempts, state, queue, kind, group_key, wait_reason)
    values (job_id, lane_id, lane_seq, case when due then moment else run_at end, moment, priority, max_attempts, state, queue, kind, group_key,
            case when not due then 'later' end);
    insert into dalsegno.job_payloads (job_id, timeout_secs, payload, headers) values (job_id, timeout_secs, payload, headers);
    insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n) values (queue, kind, 'enqueue', 'new', state, 1);
end
$body$;
comment on function dalsegno.enqueue(text, jsonb, text, text, text, integer, timestamptz, integer, text, jsonb, integer) is
  'Puts one job on the queue, in the caller''s transaction. A run_at that has passed means now. The same idempotency key with the same '
  'kind, lane and payload returns the same job (created = false); with others it raises DS409. Bad arguments raise DS400, a payload '
  'over the limit DS413.';

create function dalsegno.enqueue_many(jobs jsonb) returns table (ord bigint, job_id bigint, created boolean, state text)
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
                   or exists (select from dalsegno.jobs as j where j.lane_id = u.id and j.lane_seq is not null and j.state <> 'blocked')
                   or exists (select from dalsegno.jobs as j where j.lane_id = u.id and j.state = 'blocked') order by u.ord)
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
comment on function dalsegno.enqueue_many(jsonb) is
  'Puts an array of jobs on the queue with one statement; the keys of each object are the arguments of dalsegno.enqueue. All or none; '
  'an error names the first bad element. Returns one row per element, in order.';
