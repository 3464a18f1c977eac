-- Sends the heartbeat of a worker: renews the lease and returns what the worker must know. Runs on a connection of its own, also
-- during a drain.
-- $1 uuid              worker
-- $2 double precision  lease in seconds
-- $3 bigint[]          jobs that the worker believes it runs
-- $4 bigint[]          their leases, in the same order
-- Result: one row, or none if the worker was declared lost (it stops everything and registers again):
--   lease_until; lost = leases that the worker no longer holds; cancelled = leases with a cancel request;
--   alone_secs = how long the oldest run-alone job that it may claim has been ready (NULL: none), so that a busy worker can make room.
--   The conditions are those of claim_alone.sql: for any other job, workers would make room in vain;
--   n_ahead = number of live workers that make room for such a job before this one.
WITH renewed AS (
    UPDATE dalsegno.workers AS w
       SET renewed_at = now(), lease_until = now() + make_interval(secs => $2::double precision),
           renewing_since = CASE WHEN w.lease_until < now() THEN now() ELSE w.renewing_since END
     WHERE w.id = $1::uuid AND w.gone_at IS NULL
    RETURNING w.lease_until, w.queues, w.kinds
)
SELECT r.lease_until AS "lease_until!",
       ARRAY(SELECT m.lease FROM unnest($3::bigint[], $4::bigint[]) AS m (id, lease)
              WHERE NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.id = m.id AND j.lease = m.lease OFFSET 0)) AS "lost!",
       ARRAY(SELECT m.lease FROM unnest($3::bigint[], $4::bigint[]) AS m (id, lease)
              WHERE EXISTS (SELECT FROM dalsegno.cancel_requests AS c WHERE c.job_id = m.id OFFSET 0)) AS "cancelled!",
       w.secs AS "alone_secs?",
       CASE WHEN w.secs IS NULL THEN 0 ELSE (
            SELECT count(*) FROM dalsegno.workers AS o
             WHERE o.id < $1::uuid AND o.gone_at IS NULL AND NOT o.draining AND o.lease_until > now() AND o.queues && r.queues AND o.kinds && r.kinds
            ) END AS "n_ahead!"
  FROM renewed AS r
 CROSS JOIN LATERAL (
        SELECT extract(epoch FROM now() - min(a.run_at))::double precision AS secs
          FROM (SELECT u.name FROM unnest(r.queues) AS u (name)
                 WHERE NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'queue' AND p.name = u.name) OFFSET 0) AS q
         CROSS JOIN LATERAL (
            SELECT j.run_at FROM dalsegno.jobs AS j
             WHERE j.state = 'ready' AND j.crash_count >= 2 AND j.queue = q.name AND j.kind = ANY (r.kinds)
               AND (j.group_key IS NULL OR NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'group' AND p.name = j.group_key))
             ORDER BY j.run_at, j.id LIMIT 1) AS a) AS w
