-- Deletes one batch of old dead letters. $1 double precision retention in seconds, $2 integer rows at most. Result: deleted.
WITH gone AS (
    DELETE FROM dalsegno.dead_jobs AS d
     WHERE d.id = ANY (ARRAY(SELECT o.id FROM dalsegno.dead_jobs AS o WHERE o.died_at < now() - make_interval(secs => $1::double precision)
                              ORDER BY o.died_at LIMIT $2::integer FOR UPDATE SKIP LOCKED))
    RETURNING d.queue, d.kind
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT g.queue, g.kind, 'delete', 'dead', 'deleted', count(*) FROM gone AS g GROUP BY g.queue, g.kind
)
SELECT count(*) AS "deleted!" FROM gone
