-- Deletes one batch of lanes that are empty, not held, without a policy of their own, and unused for a long time.
-- $1 double precision unused for seconds (at least two hours), $2 integer rows at most. Result: deleted.
-- Each look for members is one step in an index. With an equality and without the order, the planner may read all jobs for each lane, because it
-- expects to find one soon if most jobs belong to a few lanes. EXISTS keeps an order only with OFFSET.
-- Safe beside enqueues: they hold the row lock while they are open and update used_at, which the lock checks again.
WITH gone AS (
    DELETE FROM dalsegno.lanes AS l
     WHERE l.id = ANY (ARRAY(
            SELECT o.id FROM dalsegno.lanes AS o
             WHERE o.used_at < now() - make_interval(secs => greatest($1::double precision, 7200)) AND o.hold_reason IS NULL AND o.on_failure = 'continue'
               AND NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id BETWEEN o.id AND o.id AND j.lane_seq IS NOT NULL AND j.state <> 'blocked' ORDER BY j.lane_id OFFSET 0)
               AND NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id BETWEEN o.id AND o.id AND j.state = 'blocked' ORDER BY j.lane_id OFFSET 0)
               AND NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.lane_id BETWEEN o.id AND o.id AND j.lane_seq IS NULL ORDER BY j.lane_id OFFSET 0)
             LIMIT $2::integer FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) AS "deleted!" FROM gone
