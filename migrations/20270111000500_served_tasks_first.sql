-- Tasks that a rate limit has served begin before the other ready tasks of their campaign. Behind thousands of them, the share that they were
-- charged stayed unused, and workers claimed tasks only to let them wait.
--
-- Replaces: lease_rate_limits.

create or replace function dalsegno.lease_rate_limits(of_worker uuid, shares jsonb, begun uuid[], moment timestamptz)
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
  -- Those whose lane was locked are ready a moment later: the next lease finds them.
  perform dalsegno.put_ahead(array(select w.job_id from dalsegno.rate_limit_waits as w where w.granted_at is not null));
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
