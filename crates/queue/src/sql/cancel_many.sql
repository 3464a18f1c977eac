-- Cancels jobs that do not run. Waits for no lock: jobs that run, or that another transaction has locked, are skipped.
-- $1 bigint[]  jobs
-- $2 text      reason, for people
-- Result: id of each cancelled job; lane_id: its lane, if the lane lost its head. Call dalsegno.promote_lanes next.
WITH free AS MATERIALIZED (
    SELECT j.id FROM dalsegno.jobs AS j WHERE j.id = ANY ($1::bigint[]) AND j.state <> 'running' ORDER BY j.id FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM dalsegno.jobs AS j WHERE j.id = ANY (ARRAY(SELECT f.id FROM free AS f))
    RETURNING j.id, j.lane_id, j.lane_seq IS NOT NULL AND j.state <> 'blocked' AS is_head, j.attempt, j.state, j.queue, j.kind, j.group_key
),
unpacked AS (
    DELETE FROM dalsegno.job_payloads AS p WHERE p.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
),
forgotten AS (
    DELETE FROM dalsegno.cancel_requests AS c WHERE c.job_id = ANY (ARRAY(SELECT g.id FROM gone AS g))
),
recorded AS (
    INSERT INTO dalsegno.runs (job_id, lease, lane_id, attempt, outcome, queue, kind, group_key, error)
    SELECT g.id, -nextval('dalsegno.leases'), g.lane_id, g.attempt, 'cancelled', g.queue, g.kind, g.group_key, nullif($2::text, '') FROM gone AS g
),
owed AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id) SELECT DISTINCT g.lane_id FROM gone AS g WHERE g.is_head
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT g.queue, g.kind, 'cancel', g.state, 'cancelled', count(*) FROM gone AS g GROUP BY g.queue, g.kind, g.state
)
SELECT g.id AS "id!", CASE WHEN g.is_head THEN g.lane_id END AS lane_id FROM gone AS g
