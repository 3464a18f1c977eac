-- Reads the facts behind `job explain` in one snapshot. Always one row; for an unknown id, state is unknown.
-- $1 bigint  job
SELECT $1::bigint AS "id!",
       coalesce(j.state, CASE WHEN d.id IS NOT NULL THEN 'dead' WHEN r.job_id IS NOT NULL THEN 'ended' ELSE 'unknown' END) AS "state!",
       coalesce(j.queue, d.queue, r.queue, '') AS "queue!", coalesce(j.kind, d.kind, r.kind, '') AS "kind!",
       j.group_key AS "group_key?", coalesce(l.key, d.lane_key) AS "lane?",
       coalesce(j.attempt, d.attempt, r.attempt, 0)::smallint AS "attempt!", coalesce(j.max_attempts, d.max_attempts, 0)::smallint AS "max_attempts!",
       coalesce(j.crash_count, d.crash_count, 0)::smallint AS "crash_count!",
       extract(epoch FROM j.run_at - clock_timestamp())::double precision AS "run_in_secs?",
       j.wait_reason AS "wait_reason?", j.hold_by AS "hold_by?", j.hold_reason AS "hold_reason?",
       extract(epoch FROM clock_timestamp() - j.claimed_at)::double precision AS "running_secs?",
       w.host AS "worker_host?", w.pid AS "worker_pid?", w.gone_reason AS "worker_gone?",
       extract(epoch FROM w.lease_until - clock_timestamp())::double precision AS "worker_lease_secs?",
       l.hold_reason AS "lane_hold_reason?", extract(epoch FROM clock_timestamp() - l.held_at)::double precision AS "lane_held_secs?",
       h.id AS "head_id?", h.state AS "head_state?", h.kind AS "head_kind?", h.wait_reason AS "head_wait_reason?", h.hold_reason AS "head_hold_reason?",
       extract(epoch FROM h.run_at - clock_timestamp())::double precision AS "head_run_in_secs?",
       extract(epoch FROM clock_timestamp() - h.claimed_at)::double precision AS "head_running_secs?",
       hw.host AS "head_worker_host?", hw.pid AS "head_worker_pid?",
       -- Bounded, so that a lane of a million jobs stays fast: 1000 means "1000 or more".
       CASE WHEN j.state = 'blocked' THEN (SELECT count(*) FROM (SELECT FROM dalsegno.jobs AS b
             WHERE b.lane_id = j.lane_id AND b.state = 'blocked' AND b.lane_seq < j.lane_seq LIMIT 1000) AS ahead) END AS "blocked_ahead?",
       CASE WHEN j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NULL THEN (SELECT count(*) FROM (SELECT FROM dalsegno.jobs AS b
             WHERE b.state = 'ready' AND b.crash_count < 2 AND b.group_key IS NULL AND b.queue = j.queue
               AND (b.priority, b.run_at, b.id) < (j.priority, j.run_at, j.id) LIMIT 1000) AS ahead)
            WHEN j.state = 'ready' AND j.crash_count < 2 THEN (SELECT count(*) FROM (SELECT FROM dalsegno.jobs AS b
             WHERE b.state = 'ready' AND b.crash_count < 2 AND b.queue = j.queue AND b.group_key = j.group_key
               AND (b.priority, b.run_at, b.id) < (j.priority, j.run_at, j.id) LIMIT 1000) AS ahead) END AS "ready_ahead?",
       qp.reason AS "queue_pause_reason?", gp.reason AS "group_pause_reason?",
       (SELECT count(*) FROM dalsegno.workers AS x WHERE x.gone_at IS NULL AND NOT x.draining AND x.lease_until > now()
           AND j.queue = ANY (x.queues)) AS "live_workers!",
       (SELECT count(*) FROM dalsegno.workers AS x WHERE x.gone_at IS NULL AND NOT x.draining AND x.lease_until > now()
           AND j.queue = ANY (x.queues) AND j.kind = ANY (x.kinds)) AS "able_workers!",
       extract(epoch FROM clock_timestamp() - c.requested_at)::double precision AS "cancel_requested_secs?",
       extract(epoch FROM clock_timestamp() - d.died_at)::double precision AS "died_secs?", d.reason AS "death_reason?", d.error AS "death_error?",
       r.outcome AS "last_outcome?", r.error AS "last_error?", r.wait_cause AS "last_wait_cause?", extract(epoch FROM clock_timestamp() - r.ended_at)::double precision AS "last_ended_secs?"
  FROM (VALUES (1)) AS one
  LEFT JOIN dalsegno.jobs AS j ON j.id = $1::bigint
  LEFT JOIN dalsegno.dead_jobs AS d ON d.id = $1::bigint
  LEFT JOIN LATERAL (SELECT r.* FROM dalsegno.runs AS r WHERE r.job_id = $1::bigint ORDER BY r.lease DESC LIMIT 1) AS r ON true
  LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id
  LEFT JOIN dalsegno.jobs AS h ON h.lane_id = j.lane_id AND h.lane_seq IS NOT NULL AND h.state <> 'blocked' AND h.id <> j.id
  LEFT JOIN dalsegno.workers AS w ON w.id = j.worker_id
  LEFT JOIN dalsegno.workers AS hw ON hw.id = h.worker_id
  LEFT JOIN dalsegno.pauses AS qp ON qp.scope = 'queue' AND qp.name = j.queue
  LEFT JOIN dalsegno.pauses AS gp ON gp.scope = 'group' AND gp.name = j.group_key
  LEFT JOIN dalsegno.cancel_requests AS c ON c.job_id = $1::bigint
