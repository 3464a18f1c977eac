-- Jobs that were charged for something before they are claimed, such as a share of a rate limit, can go ahead of the others of their group.
--
-- Adds: put_ahead.

create function dalsegno.put_ahead(ids bigint[]) returns void language sql volatile as $body$
  update dalsegno.jobs as j set run_at = o.run_at - interval '1 microsecond'
    from (select a.id, r.run_at
            from (select id, queue, group_key, priority, run_at from dalsegno.jobs
                   where id = any (ids) and state = 'ready' and group_key is not null for update skip locked) as a
           cross join lateral (
             select b.run_at from dalsegno.jobs as b
              where b.state = 'ready' and b.crash_count < 2 and b.queue = a.queue and b.group_key = a.group_key and b.priority = a.priority
                and b.id <> all (ids)
              order by b.run_at, b.id limit 1) as r
           where r.run_at <= a.run_at) as o
   where j.id = o.id
$body$;
comment on function dalsegno.put_ahead(bigint[]) is
  'Puts ready jobs ahead of the other ready ones of their group and priority. Jobs without a group keep their place: claims skip those that '
  'were ready before others.';
