-- Ends a run as failed for good. The job becomes a dead letter and its lane continues. With the policy `hold` the job stays at the
-- head of its lane, held by its failure, and the lane waits for a person.
-- $1 bigint   job
-- $2 bigint   lease
-- $3 text     reason: failed, exhausted, bad_payload
-- $4 text     error, for people
-- $5 boolean  hold the lane (policy of the handler); the policy of the lane itself counts as well
-- Result: id, state (dead or held), lane_owed = call lane_sweep.sql next, in the same transaction if there is one.
-- No row: the lease is lost.
WITH was AS MATERIALIZED (
    SELECT j.id, j.lane_id, j.lane_seq, j.enqueued_at, j.lease, j.claimed_at, j.worker_id, j.priority, j.attempt, j.max_attempts, j.crash_count,
           j.queue, j.kind, j.group_key, l.key AS lane_key, l.id IS NOT NULL AND ($5::boolean OR l.on_failure = 'hold') AS hold
      FROM (SELECT j.* FROM dalsegno.jobs AS j
             WHERE j.id = $1::bigint AND j.lease = $2::bigint AND j.state = 'running' FOR UPDATE) AS j
      LEFT JOIN LATERAL (SELECT l.id, l.key, l.on_failure FROM dalsegno.lanes AS l WHERE l.id = j.lane_id OFFSET 0) AS l ON true
),
held AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'held', hold_by = 'failure', hold_reason = 'failed: ' || coalesce($4::text, $3::text),
           lease = NULL, worker_id = NULL, claimed_at = NULL
     WHERE j.id = ANY (ARRAY(SELECT w.id FROM was AS w WHERE w.hold))
),
gone AS (
    DELETE FROM dalsegno.jobs AS j WHERE j.id = ANY (ARRAY(SELECT w.id FROM was AS w WHERE NOT w.hold))
),
unpacked AS (
    DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = ANY (ARRAY(SELECT w.id FROM was AS w WHERE NOT w.hold))
    RETURNING p.job_id, p.timeout_secs, p.payload, p.headers
),
buried AS (
    INSERT INTO dalsegno.dead_jobs (id, lane_seq, enqueued_at, lease, timeout_secs, priority, attempt, max_attempts, crash_count,
                                    queue, kind, lane_key, group_key, reason, error, payload, headers)
    SELECT w.id, w.lane_seq, w.enqueued_at, w.lease, u.timeout_secs, w.priority, w.attempt, w.max_attempts, w.crash_count,
           w.queue, w.kind, w.lane_key, w.group_key, $3::text, $4::text, u.payload, u.headers
      FROM was AS w JOIN unpacked AS u ON u.job_id = w.id
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT w.id, w.lease, w.lane_id, w.claimed_at, w.worker_id, w.attempt, 'failed', w.queue, w.kind, w.group_key, $4::text FROM was AS w
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT w.lane_id FROM was AS w WHERE w.lane_id IS NOT NULL AND NOT w.hold
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT w.queue, w.kind, 'fail', 'running', CASE WHEN w.hold THEN 'held' ELSE 'dead' END, 1 FROM was AS w
)
SELECT w.id AS "id!", CASE WHEN w.hold THEN 'held' ELSE 'dead' END AS "state!", w.lane_id IS NOT NULL AND NOT w.hold AS "lane_owed!" FROM was AS w
