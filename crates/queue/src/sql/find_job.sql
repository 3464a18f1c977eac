-- Reads a live job or a dead letter, with its payload.
SELECT j.queue AS "queue!", j.kind AS "kind!", j.state AS "state!", l.key AS "lane?", j.group_key AS "group_key?",
       j.priority AS "priority!", j.attempt AS "attempt!", j.max_attempts AS "max_attempts!", j.run_at AS "run_at!",
       j.enqueued_at AS "enqueued_at!", p.payload AS "payload!", p.headers AS "headers?",
       r.reason AS "wait_reason?", j.hold_reason AS "reason?",
       j.lease AS "lease?", j.claimed_at AS "claimed_at?", j.worker_id AS "worker_id?", w.host AS "host?", w.pid AS "pid?",
       w.lease_until AS "lease_until?"
  FROM dalsegno.jobs AS j
  JOIN dalsegno.job_payloads AS p ON p.job_id = j.id
  LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id
  LEFT JOIN dalsegno.workers AS w ON w.id = j.worker_id
  -- The reasons of waits.sql.
  CROSS JOIN LATERAL (SELECT
       CASE WHEN j.state = 'held' THEN CASE j.hold_by WHEN 'failure' THEN 'failure' ELSE 'person' END
            WHEN j.state = 'blocked' THEN CASE WHEN l.hold_reason IS NULL THEN 'lane' ELSE 'lane_hold' END
            WHEN j.state = 'ready' THEN CASE WHEN EXISTS (SELECT FROM dalsegno.pauses AS p WHERE (p.scope, p.name) IN (('queue', j.queue), ('group', j.group_key)))
                                        THEN 'pause' ELSE 'slot' END
            WHEN j.wait_reason = 'snooze' AND j.run_at >= dalsegno.never() THEN 'condition'
            -- Its last run has the cause, unless a worker of an older version wrote it. A limit is a condition, too.
            WHEN j.wait_reason = 'snooze' THEN coalesce((
                SELECT CASE r.wait_cause WHEN 'limit' THEN 'condition' ELSE r.wait_cause::text END
                  FROM dalsegno.runs AS r WHERE r.job_id = j.id ORDER BY r.lease DESC LIMIT 1), 'snooze')
            ELSE j.wait_reason::text END AS reason) AS r
 WHERE j.id = $1
UNION ALL
SELECT d.queue, d.kind, 'dead', d.lane_key, d.group_key, d.priority, d.attempt, d.max_attempts, d.died_at, d.enqueued_at,
       d.payload, d.headers, NULL, coalesce(d.error, d.reason), NULL, NULL, NULL, NULL, NULL, NULL
  FROM dalsegno.dead_jobs AS d
 WHERE d.id = $1
