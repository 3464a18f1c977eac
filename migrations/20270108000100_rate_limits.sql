-- Rate limits: requests, tokens and concurrent calls, shared by all workers.
--
-- A limit is a bucket. Its amount flows in over a minute, and it holds three seconds of that at most. Each worker leases shares of the
-- buckets that it uses, about once a second, and begins calls within its shares without a statement. It returns what it has not used with
-- the next lease. A call is charged what it really used, so a bucket may be in debt, and further calls wait until the debt is paid.
-- Concurrent calls do not flow: workers hold them, and those of a worker that does not renew its lease are free again after ten seconds.
--
-- A task that finds no share waits in dalsegno.rate_limit_waits, and its job is put off. Each lease first serves the waiting tasks, then
-- the workers. A task that is served keeps what it was granted until its turn begins, on any worker.
--
-- Fairness: a place is the number of a round. The tasks of one campaign wait for different rounds, those of different campaigns share them.
--
-- Adds: rate_limits, rate_limit_calls, rate_limit_waits.

create table dalsegno.rate_limits (
  key text not null collate "C" constraint rate_limits_pkey primary key,
  subject text not null,
  measure text not null
    constraint rate_limits_measure_known check (measure in ('requests', 'input_tokens', 'output_tokens', 'concurrent_calls')),
  amount double precision not null,
  available double precision not null,
  refilled_at timestamptz not null
);
comment on table dalsegno.rate_limits is 'Rate limits that are in use. A row that no worker uses is removed after an hour.';
comment on column dalsegno.rate_limits.subject is 'Provider, model, credential or campaign, as explanations name it.';
comment on column dalsegno.rate_limits.amount is 'Per minute; of concurrent calls, at once.';
comment on column dalsegno.rate_limits.available is 'Neither used nor leased. Negative: a debt.';

create table dalsegno.rate_limit_calls (
  key text not null collate "C",
  worker uuid not null,
  calls double precision not null,
  until timestamptz not null,
  constraint rate_limit_calls_pkey primary key (key, worker)
);
comment on table dalsegno.rate_limit_calls is 'Concurrent calls that workers make or may begin.';

create table dalsegno.rate_limit_waits (
  task_id uuid not null
    constraint rate_limit_waits_pkey primary key
    constraint rate_limit_waits_task references dalsegno.tasks (id) on delete cascade,
  job_id bigint not null,
  campaign_id uuid not null,
  keys text[] not null,
  amounts double precision[] not null,
  key text not null collate "C",
  place bigint,
  since timestamptz not null,
  granted_at timestamptz
);
comment on table dalsegno.rate_limit_waits is 'Tasks whose next call waits for a rate limit. Their jobs are put off, and keep their places in their lanes.';
comment on column dalsegno.rate_limit_waits.keys is 'All limits of the call.';
comment on column dalsegno.rate_limit_waits.amounts is 'What the call is charged in each of them.';
comment on column dalsegno.rate_limit_waits.key is 'The limit that refused the call.';
comment on column dalsegno.rate_limit_waits.place is 'Number of the round in which the task is served. NULL: the next lease gives it one.';
comment on column dalsegno.rate_limit_waits.granted_at is 'Set once the task was served. The row stays until its turn has begun.';

create index rate_limit_waits_by_place on dalsegno.rate_limit_waits (key, place, since, task_id) where granted_at is null;
create index rate_limit_waits_by_campaign on dalsegno.rate_limit_waits (key, campaign_id, place) where granted_at is null;
create index rate_limit_waits_new on dalsegno.rate_limit_waits (since, task_id) where place is null;
create index rate_limit_waits_granted on dalsegno.rate_limit_waits (granted_at) where granted_at is not null;

-------------------------------------------------------------------------------------- waits
create function dalsegno.rate_limit_place(of_key text, of_campaign uuid) returns bigint language sql volatile as $body$
  select greatest((select min(w.place) from dalsegno.rate_limit_waits as w where w.key = of_key and w.granted_at is null),
                  1 + (select max(w.place) from dalsegno.rate_limit_waits as w
                        where w.key = of_key and w.campaign_id = of_campaign and w.granted_at is null),
                  0)
$body$;
comment on function dalsegno.rate_limit_place(text, uuid) is
  'The place of a further task: the round that is served now, or the one after the last of its campaign.';

create function dalsegno.wait_for_rate_limit(waiting uuid, of_job bigint, of_campaign uuid, of_keys text[], of_amounts double precision[],
        of_key text, moment timestamptz) returns void language sql volatile as $body$
  -- Leases give places, because they run one after the other: tasks of a campaign that begin to wait at once get different ones.
  insert into dalsegno.rate_limit_waits as w (task_id, job_id, campaign_id, keys, amounts, key, since)
  values (waiting, of_job, of_campaign, of_keys, of_amounts, of_key, moment)
  on conflict on constraint rate_limit_waits_pkey do update
     set job_id = excluded.job_id, keys = excluded.keys, amounts = excluded.amounts, granted_at = null,
         -- A task that was woken for another reason keeps its place.
         key = excluded.key, place = case when w.key = excluded.key then w.place end
$body$;
comment on function dalsegno.wait_for_rate_limit(uuid, bigint, uuid, text[], double precision[], text, timestamptz) is
  'Lets a task wait, whose job the caller puts off in the same transaction.';

-------------------------------------------------------------------------------------- buckets
create function dalsegno.refill_rate_limit(of_key text, moment timestamptz) returns void language sql volatile as $body$
  update dalsegno.rate_limits as l
     set available = case l.measure
           when 'concurrent_calls' then
             l.amount - coalesce((select sum(c.calls) from dalsegno.rate_limit_calls as c where c.key = l.key and c.until > moment), 0)
                      - (select count(*) from dalsegno.rate_limit_waits as w where w.granted_at is not null and l.key = any (w.keys))
           else least(greatest(1, l.amount / 20),
                      l.available + extract(epoch from greatest(moment - l.refilled_at, interval '0')) * l.amount / 60)
         end,
         refilled_at = greatest(l.refilled_at, moment)
   where l.key = of_key
$body$;
comment on function dalsegno.refill_rate_limit(text, timestamptz) is 'Adds what has flowed into a bucket. It holds three seconds at most.';

create function dalsegno.serve_rate_limit(of_key text, moment timestamptz) returns integer language plpgsql as $body$
declare
  wait record;
  full_key text;
  state text;
  -- Grants of which no turn has begun yet are limited, or their turns could begin all at once.
  granted double precision;
  n_woken integer := 0;
begin
  perform dalsegno.refill_rate_limit(of_key, moment);
  for wait in
    select w.*, w.xmin as version, w.amounts[array_position(w.keys, of_key)] as amount
      from dalsegno.rate_limit_waits as w where w.key = of_key and w.granted_at is null order by w.place, w.since, w.task_id
  loop
    perform dalsegno.refill_rate_limit(k.key, moment) from unnest(wait.keys) as k (key) where k.key <> of_key;
    select l.key into full_key from dalsegno.rate_limits as l
     where l.key = any (wait.keys) and l.available < 1 order by l.key <> of_key limit 1;
    exit when full_key = of_key;
    if full_key is not null then
      -- It waits for another limit now, and does not hold up those behind it.
      update dalsegno.rate_limit_waits as w set key = full_key, place = dalsegno.rate_limit_place(full_key, w.campaign_id)
       where w.task_id = wait.task_id;
      continue;
    end if;
    select coalesce(sum(w.amounts[array_position(w.keys, of_key)]), 0) into granted
      from dalsegno.rate_limit_waits as w where w.granted_at is not null and of_key = any (w.keys);
    exit when granted >= greatest(20 * wait.amount, (select l.amount / 20 from dalsegno.rate_limits as l where l.key = of_key));
    state := dalsegno.end_snooze(wait.job_id);
    continue when state = 'busy';
    if state = 'over' then
      -- It was cancelled, or woken for another reason. It may wait again by now: then its row has changed, and stays.
      delete from dalsegno.rate_limit_waits as w where w.task_id = wait.task_id and w.xmin = wait.version;
      continue;
    end if;
    update dalsegno.rate_limits as l set available = l.available - wait.amounts[array_position(wait.keys, l.key)]
     where l.key = any (wait.keys);
    update dalsegno.rate_limit_waits as w set granted_at = moment where w.task_id = wait.task_id;
    n_woken := n_woken + 1;
  end loop;
  return n_woken;
end
$body$;
comment on function dalsegno.serve_rate_limit(text, timestamptz) is
  'Wakes the tasks that wait for a limit, as many as it has space for, and charges them. Returns their number.';

create function dalsegno.lease_rate_limits(of_worker uuid, shares jsonb, begun uuid[], moment timestamptz)
returns jsonb language plpgsql as $body$
declare
  one record;
  served text := '';
  n_woken integer := 0;
  is_awaited boolean;
  granted double precision;
  leases jsonb := '[]';
begin
  -- Leases run one after the other. A lease takes about a millisecond.
  perform pg_advisory_xact_lock(hashtextextended('dalsegno.rate_limits', 0));
  -- Workers now count the calls of these turns themselves. A grant that no turn has taken is over after two minutes.
  -- A task that waits again has no grant: its row stays.
  delete from dalsegno.rate_limit_waits as w
   where (w.task_id = any (begun) and w.granted_at is not null) or w.granted_at < moment - interval '2 minutes';
  delete from dalsegno.rate_limit_calls as c where c.until <= moment;
  for one in
    select w.task_id, w.key, w.campaign_id from dalsegno.rate_limit_waits as w where w.place is null order by w.since, w.task_id
  loop
    update dalsegno.rate_limit_waits as w set place = dalsegno.rate_limit_place(one.key, one.campaign_id) where w.task_id = one.task_id;
  end loop;
  for one in
    select w.* from jsonb_to_recordset(shares) as w (key text, subject text, measure text, amount double precision,
      returned double precision, in_use double precision, wanted double precision, at_most double precision)
  loop
    insert into dalsegno.rate_limits as l (key, subject, measure, amount, available, refilled_at)
    values (one.key, one.subject, one.measure, one.amount, greatest(1, one.amount / 20), moment)
    on conflict on constraint rate_limits_pkey do update set subject = excluded.subject, amount = excluded.amount;
    if one.measure = 'concurrent_calls' then
      insert into dalsegno.rate_limit_calls as c (key, worker, calls, until)
      values (one.key, of_worker, one.in_use, moment + interval '10 seconds')
      on conflict on constraint rate_limit_calls_pkey do update set calls = excluded.calls, until = excluded.until;
      perform dalsegno.refill_rate_limit(one.key, moment);
    else
      perform dalsegno.refill_rate_limit(one.key, moment);
      update dalsegno.rate_limits as l set available = least(greatest(1, l.amount / 20), l.available + one.returned, one.at_most)
       where l.key = one.key;
    end if;
  end loop;
  loop
    select min(w.key) into served from dalsegno.rate_limit_waits as w where w.granted_at is null and w.key > served;
    exit when served is null;
    n_woken := n_woken + dalsegno.serve_rate_limit(served, moment);
  end loop;
  if n_woken > 0 then
    perform dalsegno.promote_due();
  end if;
  for one in
    select w.*, l.available from jsonb_to_recordset(shares) as w (key text, measure text, in_use double precision, wanted double precision)
      join dalsegno.rate_limits as l on l.key = w.key
  loop
    is_awaited := exists (select from dalsegno.rate_limit_waits as w where w.key = one.key and w.granted_at is null);
    granted := case when is_awaited then 0 else least(one.wanted, one.available) end;
    granted := case when granted < 1 then 0 when one.measure = 'concurrent_calls' then floor(granted) else granted end;
    update dalsegno.rate_limits as l set available = l.available - granted where l.key = one.key and granted > 0;
    update dalsegno.rate_limit_calls as c set calls = one.in_use + granted
     where c.key = one.key and c.worker = of_worker and granted > 0;
    leases := leases || jsonb_build_object('key', one.key, 'granted', granted, 'available', one.available - granted, 'is_awaited', is_awaited);
  end loop;
  return leases;
end
$body$;
comment on function dalsegno.lease_rate_limits(uuid, jsonb, uuid[], timestamptz) is
  'Takes back what a worker has not used, serves the waiting tasks, and leases new shares to the worker. begun: tasks whose grants its turns '
  'have taken.';

create function dalsegno.tend_rate_limits(moment timestamptz) returns integer language plpgsql as $body$
declare
  wait record;
  n_woken integer := 0;
begin
  for wait in
    select w.task_id, w.job_id, w.xmin as version from dalsegno.rate_limit_waits as w
     where w.granted_at is null and w.since < moment - interval '1 minute'
       and not exists (select from dalsegno.rate_limits as l where l.key = w.key and l.refilled_at > moment - interval '1 minute')
     limit 1000
  loop
    continue when dalsegno.end_snooze(wait.job_id) = 'busy';
    delete from dalsegno.rate_limit_waits as w where w.task_id = wait.task_id and w.xmin = wait.version;
    n_woken := n_woken + 1;
  end loop;
  if n_woken > 0 then
    perform dalsegno.promote_due();
  end if;
  delete from dalsegno.rate_limits as l where l.refilled_at < moment - interval '1 hour';
  return n_woken;
end
$body$;
comment on function dalsegno.tend_rate_limits(timestamptz) is
  'Wakes tasks whose limit no worker serves any more, because it was removed from the settings, and removes rows that are not in use.';
