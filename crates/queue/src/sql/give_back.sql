-- Gives running jobs back with their attempt: for a drain, or for a claim that no handler can run now. Jobs without a lane are ready
-- at once. Members of a lane return to its front, and lane_sweep.sql (call it next) makes them ready.
-- $1 bigint[]  job ids
-- $2 bigint[]  their leases
-- $3 text      reason, for people
-- Result: id, in_lane. A missing job had lost its lease.
WITH was AS MATERIALIZED (
    SELECT j.id, j.lease, j.worker_id, j.claimed_at, j.attempt
      FROM dalsegno.jobs AS j
     WHERE j.id = ANY ($1::bigint[]) AND j.lease = ANY ($2::bigint[]) AND j.state = 'running'
     ORDER BY j.id FOR UPDATE
),
back AS (
    UPDATE dalsegno.jobs AS j
       SET state = CASE WHEN j.lane_id IS NULL THEN 'ready' ELSE 'blocked' END,
           lease = NULL, worker_id = NULL, claimed_at = NULL, attempt = j.attempt - 1, crash_count = 0
     WHERE j.id = ANY (ARRAY(SELECT w.id FROM was AS w))
    RETURNING j.id, j.state, j.lane_id, j.queue, j.kind, j.group_key
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT b.id, w.lease, b.lane_id, w.claimed_at, w.worker_id, w.attempt, 'given_back', b.queue, b.kind, b.group_key, $3::text
      FROM back AS b JOIN was AS w ON w.id = b.id
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT b.lane_id FROM back AS b WHERE b.lane_id IS NOT NULL
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT b.queue, b.kind, 'give_back', 'running', b.state, count(*) FROM back AS b GROUP BY b.queue, b.kind, b.state
)
SELECT b.id AS "id!", b.lane_id IS NOT NULL AS "in_lane!" FROM back AS b
