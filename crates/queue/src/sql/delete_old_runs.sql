-- Deletes one batch of old runs. $1 double precision retention in seconds, $2 integer rows at most. Result: deleted. Repeat while deleted = $2.
WITH gone AS (
    DELETE FROM dalsegno.runs AS r
     WHERE r.ctid = ANY (ARRAY(SELECT o.ctid FROM dalsegno.runs AS o WHERE o.ended_at < now() - make_interval(secs => $1::double precision)
                                ORDER BY o.ended_at LIMIT $2::integer FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) AS "deleted!" FROM gone
