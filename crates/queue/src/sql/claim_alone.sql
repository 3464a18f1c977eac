-- Claims one job that has lost two workers, for a worker that runs nothing else and claims nothing else until this job has ended.
-- So the job cannot take other runs down, and if the worker is lost again, this job is the cause.
-- $1 text[]  queues
-- $2 uuid    worker
-- $3 text[]  kinds this worker has handlers for
-- Result: as claim.sql, at most one row. Nothing is claimed for a worker that has a running job (checked here as well).
WITH picked AS (
    SELECT j.id
      FROM unnest($1::text[]) AS q (name)
     CROSS JOIN LATERAL (
        SELECT j.id FROM dalsegno.jobs AS j
         WHERE j.state = 'ready' AND j.crash_count >= 2 AND j.queue = q.name AND j.kind = ANY ($3::text[])
           AND (j.group_key IS NULL OR NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'group' AND p.name = j.group_key))
         ORDER BY j.run_at, j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED) AS j
     WHERE NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'queue' AND p.name = q.name)
       AND EXISTS (SELECT FROM dalsegno.workers AS w
                    WHERE w.id = $2::uuid AND w.gone_at IS NULL AND NOT w.draining AND w.lease_until > now())
       AND NOT EXISTS (SELECT FROM dalsegno.jobs AS r WHERE r.worker_id = $2::uuid AND r.state = 'running')
     LIMIT 1
),
claimed AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'running', lease = nextval('dalsegno.leases') + floor(random() * 1048576)::bigint, worker_id = $2::uuid, claimed_at = clock_timestamp(), attempt = j.attempt + 1
     WHERE j.id = ANY (ARRAY(SELECT p.id FROM picked AS p))
    RETURNING j.id, j.lease, j.queue, j.kind, j.lane_id, j.group_key, j.priority, j.attempt, j.max_attempts, j.crash_count,
              j.run_at, j.enqueued_at, j.claimed_at
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT c.queue, c.kind, 'claim', 'ready', 'running', 1 FROM claimed AS c
)
SELECT c.id AS "id!", c.lease AS "lease!", c.queue AS "queue!", c.kind AS "kind!", l.key AS "lane?", c.group_key AS "group_key?",
       c.priority AS "priority!", c.attempt AS "attempt!", c.max_attempts AS "max_attempts!", c.run_at AS "run_at!", c.claimed_at AS "claimed_at!",
       p.payload::text AS "payload!", p.headers::text AS "headers?", p.timeout_secs AS "timeout_secs?", false AS "in_turn!"
  FROM claimed AS c
 CROSS JOIN LATERAL (SELECT p.payload, p.headers, p.timeout_secs FROM dalsegno.job_payloads AS p WHERE p.job_id = c.id OFFSET 0) AS p
  LEFT JOIN LATERAL (SELECT l.key FROM dalsegno.lanes AS l WHERE l.id = c.lane_id OFFSET 0) AS l ON true
