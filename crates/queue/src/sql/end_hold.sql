-- Holds a running job until a person decides. The attempt is given back.
-- The head of a lane keeps its place, and the lane waits with it.
-- $1 bigint  job
-- $2 bigint  lease
-- $3 text    reason, for people
-- Result: id. No row: the lease is lost.
WITH held AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'held', hold_by = 'person', hold_reason = $3::text, lease = NULL, worker_id = NULL, claimed_at = NULL,
           crash_count = 0, attempt = j.attempt - 1
      FROM (SELECT j.id, j.lease, j.worker_id, j.claimed_at, j.attempt FROM dalsegno.jobs AS j
             WHERE j.id = $1::bigint AND j.lease = $2::bigint AND j.state = 'running' FOR UPDATE) AS was
     WHERE j.id = was.id AND j.id = $1::bigint
    RETURNING j.id, was.lease, j.lane_id, was.claimed_at, was.worker_id, was.attempt, j.queue, j.kind, j.group_key
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT h.id, h.lease, h.lane_id, h.claimed_at, h.worker_id, h.attempt, 'given_back', h.queue, h.kind, h.group_key, $3::text FROM held AS h
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT h.queue, h.kind, 'hold', 'running', 'held', 1 FROM held AS h
)
SELECT h.id AS "id!" FROM held AS h
