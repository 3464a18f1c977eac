-- Reads the figures that the doctor and the metrics need about the queue, in one statement.
-- Result: one row. Names are comma-separated lists of at most five; NULL: none.
select
  (select string_agg(q.queue, ', ') from (
     select distinct c.queue from dalsegno.job_counts as c
      where c.state = 'ready' and c.jobs > 0
        and not exists (select from dalsegno.workers as w
                         where w.gone_at is null and w.lease_until > now() and c.queue = any (w.queues))
      order by c.queue limit 5) as q) as "deserted?",
  (select string_agg(p.scope || ' ' || p.name, ', ') from (
     select scope, name from dalsegno.pauses order by scope, name limit 5) as p) as "paused?",
  (select coalesce(sum(c.jobs), 0)::bigint from dalsegno.job_counts as c where c.state = 'dead') as "dead!",
  (select count(*) from (
     select from dalsegno.lanes where hold_reason is not null limit 1000) as l) as "held_lanes!",
  (select coalesce(max(extract(epoch from now() - a.xact_start)), 0)::double precision from pg_stat_activity as a
    where a.datname = current_database() and a.pid <> pg_backend_pid()) as "oldest_transaction_secs!",
  -- Of all databases of the server: they share one sequence of transaction ids, and snapshots contain the ids of all.
  (select coalesce(max(extract(epoch from now() - w.since)), 0)::double precision from (
     select a.xact_start from pg_stat_activity as a where a.backend_xid is not null and a.pid <> pg_backend_pid()
     union all select p.prepared from pg_prepared_xacts as p) as w (since)) as "oldest_writer_secs!"
