-- Counts waiting jobs by queue and reason. Reads the oldest live jobs only. $1 rows at most.
SELECT j.queue AS "queue!",
       CASE WHEN j.state = 'held' THEN CASE j.hold_by WHEN 'failure' THEN 'failure' ELSE 'person' END
            WHEN j.state = 'blocked' THEN CASE WHEN (SELECT l.hold_reason FROM dalsegno.lanes AS l WHERE l.id = j.lane_id) IS NULL THEN 'lane' ELSE 'lane_hold' END
            WHEN j.state = 'ready' THEN CASE WHEN EXISTS (SELECT FROM dalsegno.pauses AS p WHERE (p.scope, p.name) IN (('queue', j.queue), ('group', j.group_key)))
                                        THEN 'pause' ELSE 'slot' END
            -- A snooze without an end waits for a condition, such as space in a budget.
            WHEN j.wait_reason = 'snooze' AND j.run_at >= dalsegno.never() THEN 'condition'
            -- Its last run has the cause, unless a worker of an older version wrote it. A limit is a condition, too.
            WHEN j.wait_reason = 'snooze' THEN coalesce((
                SELECT CASE r.wait_cause WHEN 'limit' THEN 'condition' ELSE r.wait_cause::text END
                  FROM dalsegno.runs AS r WHERE r.job_id = j.id ORDER BY r.lease DESC LIMIT 1), 'snooze')
            ELSE j.wait_reason::text END AS "reason!: WaitReason",
       count(*) AS "jobs!", min(j.enqueued_at) AS "oldest_at!",
       min(j.run_at) FILTER (WHERE j.state = 'scheduled' AND j.run_at < dalsegno.never()) AS "next_at?",
       min(j.run_at) FILTER (WHERE j.state = 'ready') AS "ready_at?"
  -- The constant limit is MAX_COUNTED, as the parameter. It tells the planner to expect few rows; with the parameter alone, it expects a tenth
  -- of the table and sorts all of it.
  FROM (SELECT * FROM (SELECT * FROM dalsegno.jobs ORDER BY id LIMIT 10000) AS o LIMIT $1) AS j
 WHERE j.state <> 'running'
 GROUP BY 1, 2
 ORDER BY 1, 3 DESC, 2
