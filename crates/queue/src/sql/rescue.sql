-- Takes back the jobs of lost workers. Every worker calls it every few seconds.
-- $1 uuid              caller; nothing happens unless it has renewed its lease without a gap for one whole lease: after an outage
--                      of the database, every worker looks lost
-- $2 double precision  lease in seconds
-- $3 double precision  backoff in seconds after the first crash (jitter 75 to 125 %); the second waits four times as long
-- $4 integer           jobs at most
-- Result: id, lease (lost), state (scheduled, dead, held), worker_id, lane_owed (call lane_sweep.sql next), queue, kind.
--
-- A claim may commit while its worker is being declared lost, and a worker that stops may leave jobs behind when no other worker
-- runs for days. So this statement checks the jobs of all workers that are gone, not only of those that it finds now.
-- delete_old_workers.sql keeps the row of a worker until its jobs are taken back.
WITH entitled AS MATERIALIZED (
    SELECT FROM dalsegno.workers AS me
     WHERE me.id = $1::uuid AND me.gone_at IS NULL AND me.lease_until > now()
       AND me.renewing_since <= now() - make_interval(secs => $2::double precision)
),
silent AS MATERIALIZED (
    SELECT w.id FROM dalsegno.workers AS w
     WHERE w.gone_at IS NULL AND w.lease_until < now() AND w.id <> $1::uuid AND EXISTS (SELECT FROM entitled)
     ORDER BY w.id FOR UPDATE SKIP LOCKED
),
marked AS (
    UPDATE dalsegno.workers AS w SET gone_at = now(), gone_reason = 'lost', waiting = false
     WHERE w.id = ANY (ARRAY(SELECT s.id FROM silent AS s))
    RETURNING w.id
),
orphans AS MATERIALIZED (
    SELECT j.id, j.lane_id, j.lane_seq, j.enqueued_at, j.lease, j.claimed_at, j.worker_id, j.priority, j.attempt, j.max_attempts,
           j.crash_count + 1 AS crash_count, j.queue, j.kind, j.group_key, l.key AS lane_key, coalesce(l.on_failure = 'hold', false) AS hold
      FROM (SELECT m.id FROM marked AS m
            UNION ALL
            SELECT w.id FROM dalsegno.workers AS w WHERE w.gone_at IS NOT NULL AND EXISTS (SELECT FROM entitled)) AS dead
     CROSS JOIN LATERAL (SELECT j.* FROM dalsegno.jobs AS j WHERE j.worker_id = dead.id AND j.state = 'running'
                          ORDER BY j.id LIMIT $4::integer FOR UPDATE SKIP LOCKED) AS j
      LEFT JOIN LATERAL (SELECT l.key, l.on_failure FROM dalsegno.lanes AS l WHERE l.id = j.lane_id OFFSET 0) AS l ON true
     LIMIT $4::integer
),
back AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'scheduled', wait_reason = 'crash', lease = NULL, worker_id = NULL, claimed_at = NULL,
           attempt = j.attempt - 1, crash_count = j.crash_count + 1,
           run_at = clock_timestamp() + make_interval(secs => $3::double precision * 4.0 ^ j.crash_count * (0.75 + random() * 0.5))
     WHERE j.id = ANY (ARRAY(SELECT o.id FROM orphans AS o WHERE o.crash_count < 3))
),
held AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'held', hold_by = 'failure', hold_reason = 'failed: it took three workers down', crash_count = j.crash_count + 1,
           lease = NULL, worker_id = NULL, claimed_at = NULL
     WHERE j.id = ANY (ARRAY(SELECT o.id FROM orphans AS o WHERE o.crash_count >= 3 AND o.hold))
),
gone AS (
    DELETE FROM dalsegno.jobs AS j WHERE j.id = ANY (ARRAY(SELECT o.id FROM orphans AS o WHERE o.crash_count >= 3 AND NOT o.hold))
),
unpacked AS (
    DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = ANY (ARRAY(SELECT o.id FROM orphans AS o WHERE o.crash_count >= 3 AND NOT o.hold))
    RETURNING p.job_id, p.timeout_secs, p.payload, p.headers
),
buried AS (
    INSERT INTO dalsegno.dead_jobs (id, lane_seq, enqueued_at, lease, timeout_secs, priority, attempt, max_attempts, crash_count,
                                    queue, kind, lane_key, group_key, reason, error, payload, headers)
    SELECT o.id, o.lane_seq, o.enqueued_at, o.lease, u.timeout_secs, o.priority, o.attempt, o.max_attempts, o.crash_count,
           o.queue, o.kind, o.lane_key, o.group_key, 'worker_lost', 'its worker was lost three times in a row while running it', u.payload, u.headers
      FROM orphans AS o JOIN unpacked AS u ON u.job_id = o.id
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, worker_id, attempt, outcome, queue, kind, group_key, error)
    SELECT o.id, o.lease, o.lane_id, o.claimed_at, o.worker_id, o.attempt, 'lost', o.queue, o.kind, o.group_key, 'the worker''s lease ended'
      FROM orphans AS o
),
results AS (
    SELECT o.id, o.lease, o.worker_id, o.lane_id, o.queue, o.kind,
           CASE WHEN o.crash_count < 3 THEN 'scheduled' WHEN o.hold THEN 'held' ELSE 'dead' END AS state
      FROM orphans AS o
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT r.lane_id FROM results AS r WHERE r.lane_id IS NOT NULL AND r.state = 'dead'
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT r.queue, r.kind, 'lost', 'running', r.state, count(*) FROM results AS r GROUP BY r.queue, r.kind, r.state
)
SELECT r.id AS "id!", r.lease AS "lease!", r.state AS "state!", r.worker_id AS "worker_id!", r.lane_id IS NOT NULL AND r.state = 'dead' AS "lane_owed!", r.queue AS "queue!", r.kind AS "kind!" FROM results AS r
