-- Ends a run as cancelled, after its handler has stopped.
-- $1 bigint  job
-- $2 bigint  lease
-- $3 text    reason, for people; NULL: the reason of the cancel request
-- Result: id, lane_owed = call lane_sweep.sql next. No row: the lease is lost.
WITH gone AS (
    DELETE FROM dalsegno.jobs AS j WHERE j.id = $1::bigint AND j.lease = $2::bigint AND j.state = 'running'
    RETURNING j.id, j.lease, j.lane_id, j.claimed_at, j.worker_id, j.attempt, j.queue, j.kind, j.group_key
),
unpacked AS (
    DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT g.id, g.lease, g.lane_id, g.claimed_at, g.worker_id, g.attempt, 'cancelled', g.queue, g.kind, g.group_key,
           coalesce($3::text, (SELECT nullif(c.reason, '') FROM dalsegno.cancel_requests AS c WHERE c.job_id = g.id))
      FROM gone AS g
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT g.lane_id FROM gone AS g WHERE g.lane_id IS NOT NULL
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT g.queue, g.kind, 'cancel', 'running', 'cancelled', 1 FROM gone AS g
)
SELECT g.id AS "id!", g.lane_id IS NOT NULL AS "lane_owed!" FROM gone AS g
