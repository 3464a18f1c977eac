-- Deletes one batch of old idempotency keys of ended jobs. $1 double precision retention in seconds, $2 integer rows at most. Result: deleted.
WITH gone AS (
    DELETE FROM dalsegno.idempotency_keys AS i
     WHERE i.key = ANY (ARRAY(
            SELECT o.key FROM dalsegno.idempotency_keys AS o
             WHERE o.created_at < now() - make_interval(secs => $1::double precision)
               AND NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.id = o.job_id)
               AND NOT EXISTS (SELECT FROM dalsegno.dead_jobs AS d WHERE d.id = o.job_id)
             ORDER BY o.created_at LIMIT $2::integer FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) AS "deleted!" FROM gone
