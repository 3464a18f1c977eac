-- Selects from these jobs the ones that have ended (not waiting, held or running), with their outcome as far as it was recorded.
-- $1 bigint[]  job ids
SELECT asked.id AS "id!", coalesce(last.outcome = 'cancelled', dead.id IS NULL) AS "cancelled!",
       coalesce(dead.error, dead.reason, last.error) AS error
  FROM unnest($1::bigint[]) AS asked (id)
  LEFT JOIN dalsegno.dead_jobs AS dead ON dead.id = asked.id
  LEFT JOIN LATERAL (SELECT r.outcome, r.error FROM dalsegno.runs AS r WHERE r.job_id = asked.id ORDER BY r.ended_at DESC LIMIT 1) AS last ON true
 WHERE NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.id = asked.id)
