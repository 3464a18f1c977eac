-- Lists the rate limits that are in use, with the tasks that wait for them.
-- $1 the present time
select l.key, l.subject, l.measure as "measure: Measure", l.amount,
       -- As dalsegno.refill_rate_limit does it.
       case when l.measure = 'concurrent_calls'
            then l.amount - coalesce((select sum(c.calls) from dalsegno.rate_limit_calls as c where c.key = l.key and c.until > $1), 0)
                          - (select count(*) from dalsegno.rate_limit_waits as g where g.granted_at is not null and l.key = any (g.keys))
            else least(greatest(1, l.amount / 20), l.available + extract(epoch from greatest($1::timestamptz - l.refilled_at, interval '0'))::float8 * l.amount / 60)
       end as "available!", count(w.task_id) as "waiting_tasks!", min(w.since) as waiting_since
  from dalsegno.rate_limits as l
  left join dalsegno.rate_limit_waits as w on w.key = l.key and w.granted_at is null
 group by l.key
 order by l.key
