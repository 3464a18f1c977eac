-- Lists jobs. $1 queue, $2 kind, $3 state, $4 lane, $7 group, $8 reason of the wait (`snooze` includes those with a cause): NULL matches all. $5 after this id. $6 rows at most.
(SELECT j.id AS "id!", j.queue AS "queue!", j.kind AS "kind!", j.state AS "state!", l.key AS "lane?", j.group_key AS "group_key?",
        j.priority AS "priority!", j.attempt AS "attempt!", j.max_attempts AS "max_attempts!", j.run_at AS "run_at!",
        j.enqueued_at AS "enqueued_at!", w.reason AS "wait_reason?", j.hold_reason AS "reason?"
   FROM dalsegno.jobs AS j
   LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id
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
            ELSE j.wait_reason::text END AS reason) AS w
  WHERE ($1::text IS NULL OR j.queue = $1) AND ($2::text IS NULL OR j.kind = $2) AND ($3::text IS NULL OR j.state = $3)
   AND ($4::text IS NULL OR j.lane_id = (SELECT id FROM dalsegno.lanes WHERE key = $4)) AND ($7::text IS NULL OR j.group_key = $7) AND j.id > $5
   AND ($8::text IS NULL OR w.reason = $8 OR ($8 = 'snooze' AND w.reason IN ('provider', 'batch')))
  ORDER BY j.id LIMIT $6)
UNION ALL
(SELECT d.id, d.queue, d.kind, 'dead', d.lane_key, d.group_key, d.priority, d.attempt, d.max_attempts, d.died_at, d.enqueued_at,
        NULL, coalesce(d.error, d.reason)
   FROM dalsegno.dead_jobs AS d
 WHERE ($1::text IS NULL OR d.queue = $1) AND ($2::text IS NULL OR d.kind = $2) AND $3::text = 'dead' AND $8::text IS NULL
   AND ($4::text IS NULL OR d.lane_key = $4) AND ($7::text IS NULL OR d.group_key = $7) AND d.id > $5
  ORDER BY d.id LIMIT $6)
ORDER BY 1 LIMIT $6
