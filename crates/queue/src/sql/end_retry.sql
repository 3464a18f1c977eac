-- Ends a run as failed, with attempts left (the caller checks attempt < max_attempts; otherwise use end_fail.sql).
-- The head of a lane keeps its place, and the lane waits for its next attempt.
-- $1 bigint            job
-- $2 bigint            lease
-- $3 text              error, for people
-- $4 double precision  base of the backoff in seconds
-- $5 double precision  cap of the backoff in seconds
-- $6 double precision  delay that the handler asked for, in seconds; NULL: base * 2^(attempt - 1), at most the cap
-- The delay is stored in run_at, with jitter: 75 to 125 % of a backoff, 100 to 110 % of a delay that was asked for.
-- Result: id, run_at. No row: the lease is lost.
WITH back AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'scheduled', wait_reason = 'retry', lease = NULL, worker_id = NULL, claimed_at = NULL, crash_count = 0,
           run_at = clock_timestamp() + make_interval(secs => coalesce(
               $6::double precision * (1 + random() * 0.1),
               least($5::double precision, $4::double precision * 2.0 ^ least(j.attempt - 1, 30)) * (0.75 + random() * 0.5)))
      FROM (SELECT j.id, j.lease, j.worker_id, j.claimed_at FROM dalsegno.jobs AS j
             WHERE j.id = $1::bigint AND j.lease = $2::bigint AND j.state = 'running' FOR UPDATE) AS was
     WHERE j.id = was.id AND j.id = $1::bigint
    RETURNING j.id, j.run_at, was.lease, j.lane_id, was.claimed_at, was.worker_id, j.attempt, j.queue, j.kind, j.group_key
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT b.id, b.lease, b.lane_id, b.claimed_at, b.worker_id, b.attempt, 'retry', b.queue, b.kind, b.group_key, $3::text FROM back AS b
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT b.queue, b.kind, 'retry', 'running', 'scheduled', 1 FROM back AS b
)
SELECT b.id AS "id!", b.run_at AS "run_at!" FROM back AS b
