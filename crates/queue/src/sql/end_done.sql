-- Ends runs as done: deletes jobs and payloads, records the runs, and makes the next job of each lane ready. One statement.
-- $1 bigint[]  job ids
-- $2 bigint[]  their leases
-- Result: one row per ended job: id, and lane_owed = the promotion of the lane could not be done now (call lane_sweep.sql soon; the
-- debt is stored in dalsegno.lane_sweeps). A missing job had lost its lease: the caller stops without an error.
--
-- A lease belongs to exactly one job, so comparing both sets compares pairs.
-- The row of the lane is locked without waiting: an application may hold it in an open transaction. Its next_seq tells
-- whether another transaction added a member after the snapshot of this statement; that member is then owed a promotion.
WITH gone AS (
    DELETE FROM dalsegno.jobs AS j
     WHERE j.id = ANY ($1::bigint[]) AND j.lease = ANY ($2::bigint[]) AND j.state = 'running'
    RETURNING j.id, j.lease, j.lane_id, j.worker_id, j.claimed_at, j.attempt, j.queue, j.kind, j.group_key
),
unpacked AS (
    DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, started_at, ended_at, worker_id, attempt, outcome, queue, kind, group_key)
    SELECT g.id, g.lease, g.lane_id, g.claimed_at, clock_timestamp(), g.worker_id, g.attempt, 'done', g.queue, g.kind, g.group_key FROM gone AS g
),
left_lanes AS MATERIALIZED (
    SELECT DISTINCT g.lane_id FROM gone AS g WHERE g.lane_id IS NOT NULL
),
locked AS MATERIALIZED (
    SELECT n.lane_id, l.next_seq, l.hold_reason IS NOT NULL AS held
      FROM left_lanes AS n
     CROSS JOIN LATERAL (SELECT l.next_seq, l.hold_reason FROM dalsegno.lanes AS l WHERE l.id = n.lane_id FOR NO KEY UPDATE SKIP LOCKED) AS l
),
nexts AS MATERIALIZED (
    -- Only the first in line: if it is locked (for example by a cancellation), the lane waits for the outcome.
    SELECT k.lane_id, k.next_seq, f.id, f.id IS NOT NULL AND EXISTS (
               SELECT FROM (SELECT FROM dalsegno.jobs AS j WHERE j.id = f.id AND j.state = 'blocked' FOR UPDATE SKIP LOCKED) AS x) AS free
      FROM locked AS k
      LEFT JOIN LATERAL (
        SELECT j.id FROM dalsegno.jobs AS j WHERE j.lane_id = k.lane_id AND j.state = 'blocked' ORDER BY j.lane_seq LIMIT 1) AS f ON true
     WHERE NOT k.held
),
promoted AS (
    UPDATE dalsegno.jobs AS j
       SET state = CASE WHEN j.hold_reason IS NULL THEN 'ready' ELSE 'held' END, run_at = clock_timestamp()
     WHERE j.id = ANY (ARRAY(SELECT n.id FROM nexts AS n WHERE n.free))
    RETURNING j.queue, j.kind, j.state
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id)
    SELECT n.lane_id FROM left_lanes AS n WHERE NOT EXISTS (SELECT FROM locked AS k WHERE k.lane_id = n.lane_id)
    UNION ALL
    SELECT n.lane_id FROM nexts AS n
     WHERE n.id IS NOT NULL AND NOT n.free
        OR n.id IS NULL AND n.next_seq <> (SELECT l.next_seq FROM dalsegno.lanes AS l WHERE l.id = n.lane_id)
    RETURNING lane_id
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT g.queue, g.kind, 'done', 'running', 'done', count(*) FROM gone AS g GROUP BY g.queue, g.kind
    UNION ALL
    SELECT p.queue, p.kind, 'promote', 'blocked', p.state, count(*) FROM promoted AS p GROUP BY p.queue, p.kind, p.state
)
SELECT g.id AS "id!", g.lane_id IS NOT NULL AND EXISTS (SELECT FROM owed AS o WHERE o.lane_id = g.lane_id) AS "lane_owed!" FROM gone AS g
