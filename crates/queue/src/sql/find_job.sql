-- Reads a live job or a dead letter, with its payload.
SELECT j.queue AS "queue!", j.kind AS "kind!", j.state AS "state!", l.key AS "lane?", j.group_key AS "group_key?",
       j.priority AS "priority!", j.attempt AS "attempt!", j.max_attempts AS "max_attempts!", j.run_at AS "run_at!",
       j.enqueued_at AS "enqueued_at!", p.payload AS "payload!", p.headers AS "headers?",
       j.wait_reason::text AS "wait_reason?", j.hold_reason AS "reason?"
  FROM dalsegno.jobs AS j
  JOIN dalsegno.job_payloads AS p ON p.job_id = j.id
  LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id
 WHERE j.id = $1
UNION ALL
SELECT d.queue, d.kind, 'dead', d.lane_key, d.group_key, d.priority, d.attempt, d.max_attempts, d.died_at, d.enqueued_at,
       d.payload, d.headers, NULL, coalesce(d.error, d.reason)
  FROM dalsegno.dead_jobs AS d
 WHERE d.id = $1
