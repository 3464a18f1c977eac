-- Selects from these jobs the ones that have ended (not waiting, held or running), with their outcome as far as it was recorded.
-- $1 bigint[]  job ids
-- Result: may_return = its worker was declared lost a short time ago. If that worker had only lost the database, it puts the job on the queue again
-- (unmark_crashes.sql) as soon as it reaches it.
SELECT asked.id AS "id!", coalesce(last.outcome = 'cancelled', dead.id IS NULL) AS "cancelled!",
       coalesce(dead.error, dead.reason, last.error) AS error,
       coalesce(dead.reason = 'worker_lost' AND dead.died_at > clock_timestamp() - interval '1 minute', false) AS "may_return!"
  FROM unnest($1::bigint[]) AS asked (id)
  LEFT JOIN dalsegno.dead_jobs AS dead ON dead.id = asked.id
  LEFT JOIN LATERAL (SELECT r.outcome, r.error FROM dalsegno.runs AS r WHERE r.job_id = asked.id ORDER BY r.ended_at DESC LIMIT 1) AS last ON true
 WHERE NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.id = asked.id)
