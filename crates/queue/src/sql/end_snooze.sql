-- Puts a running job off (rate limit, quota, a condition that is not met). The attempt is given back.
-- The head of a lane keeps its place, and the lane waits with it.
-- $1 bigint       job
-- $2 bigint       lease
-- $3 timestamptz  until; NULL: use $4
-- $4 double precision  seconds from now by the clock of the database (when $3 is NULL)
-- $5 text         reason, for people
-- $6 text         cause: provider, limit or batch; NULL: another one
-- Result: id, run_at. No row: the lease is lost.
WITH back AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'scheduled', wait_reason = 'snooze', lease = NULL, worker_id = NULL, claimed_at = NULL, crash_count = 0,
           attempt = j.attempt - 1,
           run_at = coalesce($3::timestamptz, clock_timestamp() + make_interval(secs => $4::double precision))
      FROM (SELECT j.id, j.lease, j.worker_id, j.claimed_at, j.attempt FROM dalsegno.jobs AS j
             WHERE j.id = $1::bigint AND j.lease = $2::bigint AND j.state = 'running' FOR UPDATE) AS was
     WHERE j.id = was.id AND j.id = $1::bigint
    RETURNING j.id, j.run_at, was.lease, j.lane_id, was.claimed_at, was.worker_id, was.attempt, j.queue, j.kind, j.group_key
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error, wait_cause)
    SELECT b.id, b.lease, b.lane_id, b.claimed_at, b.worker_id, b.attempt, 'snooze', b.queue, b.kind, b.group_key, $5::text, $6::text FROM back AS b
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT b.queue, b.kind, 'snooze', 'running', 'scheduled', 1 FROM back AS b
)
SELECT b.id AS "id!", b.run_at AS "run_at!" FROM back AS b
