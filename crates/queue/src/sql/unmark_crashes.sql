-- Removes the crash marks of runs whose worker was declared lost and has returned. The worker stopped its handlers in time while it
-- could not reach the database, so its runs were interrupted, not crashed. Idempotent. A job that another worker has claimed again loses
-- its mark, too: its next end may be another crash.
-- $1 bigint[]  job ids
-- $2 bigint[]  the leases they had
-- Result: id of each job whose mark was removed; revived = the mark had made it a dead letter.
WITH excused AS (
    UPDATE dalsegno.runs AS r SET outcome = 'interrupted'
     WHERE r.job_id = ANY ($1::bigint[]) AND r.lease = ANY ($2::bigint[]) AND r.outcome = 'lost'
    RETURNING r.job_id
),
eased AS (
    UPDATE dalsegno.jobs AS j
       SET crash_count = greatest(j.crash_count - 1, 0),
           run_at = CASE WHEN j.wait_reason = 'crash' THEN least(j.run_at, clock_timestamp()) ELSE j.run_at END
     WHERE j.id = ANY (ARRAY(SELECT e.job_id FROM excused AS e))
),
dead AS MATERIALIZED (
    SELECT d.id FROM dalsegno.dead_jobs AS d
     WHERE d.id = ANY (ARRAY(SELECT e.job_id FROM excused AS e)) AND d.lease = ANY ($2::bigint[]) AND d.reason = 'worker_lost'
)
SELECT e.job_id AS "id!", EXISTS (SELECT FROM dead AS d WHERE d.id = e.job_id) AND dalsegno.retry(e.job_id) IS NOT NULL AS "revived!"
  FROM excused AS e
