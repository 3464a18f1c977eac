-- Claims up to $1 ready jobs of the given queues for one worker and returns everything that a run needs.
-- $1 bigint       free slots, > 0
-- $2 text[]       queues, tried in this order; the caller rotates them from claim to claim
-- $3 uuid         worker; nothing is claimed unless it is registered, not draining, and has a valid lease
-- $4 smallint     floor, with $5 and $6: jobs without a group of priority $4 that were ready before ($5, $6) are skipped; more
--                 urgent jobs are not. (-1, '-infinity', 0) skips none
-- $5 timestamptz  floor: run_at
-- $6 bigint       floor: id
-- $7 text         the group served or passed last, '' at first: the groups after it in alphabetical order come first, then the others
-- $8 text[]       kinds this worker has handlers for; jobs of other kinds are not claimed
-- Result: one row per claimed job. Fewer rows than $1 but more than none: claim again at once. in_turn: the group of the job was
-- served in turn, so the next claim begins after it.
-- A row with the id 0 is no job: none of the 32 groups that were looked at has a job of these kinds, and its group is the last of
-- them. The next claim begins after that group, because otherwise it would find the same 32.
--
-- Plans: every access goes through a LATERAL with a LIMIT or lock of its own, or through id = ANY (ARRAY(...)), so that
-- the generic plan of a prepared statement cannot become a join over the whole table. The constant LIMIT 1000 inside a
-- LIMIT by parameter limits no real claim. It tells the planner to expect few rows; otherwise the planner expects a tenth of the
-- table and compiles the statement (JIT) each time.
-- Without ready groups, jobs are locked as they are scanned. As soon as a group has ready jobs, candidates are taken in
-- turns: a share per group, for at most 32 groups per queue, most urgent first. Then they are locked one by one. If a queue
-- has more groups, the jobs of the others that are more urgent than usual are candidates, too. Only the first 100 urgent jobs
-- are looked at, because any number of them may belong to a paused group. Usual jobs pay for one look into an empty index.
WITH RECURSIVE
open_queues AS MATERIALIZED (
    SELECT q.name
      FROM unnest($2::text[]) WITH ORDINALITY AS q (name, pos)
     WHERE NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'queue' AND p.name = q.name)
       AND EXISTS (SELECT FROM dalsegno.workers AS w
                    WHERE w.id = $3::uuid AND w.gone_at IS NULL AND NOT w.draining AND w.lease_until > now())
     ORDER BY q.pos
),
ring (queue, group_key, wrapped, paused, visited) AS (
    SELECT q.name, g.group_key, g.wrapped, g.paused, (NOT g.paused)::int
      FROM open_queues AS q
     CROSS JOIN LATERAL (
        SELECT s.group_key, s.wrapped,
               EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'group' AND p.name = s.group_key) AS paused
          FROM ((SELECT j.group_key, false AS wrapped FROM dalsegno.jobs AS j
                  WHERE j.state = 'ready' AND j.crash_count < 2 AND j.queue = q.name AND j.group_key > $7::text
                  ORDER BY j.group_key LIMIT 1)
                UNION ALL
                (SELECT j.group_key, true FROM dalsegno.jobs AS j
                  WHERE j.state = 'ready' AND j.crash_count < 2 AND j.queue = q.name AND j.group_key > '' AND j.group_key <= $7::text
                  ORDER BY j.group_key LIMIT 1)
                LIMIT 1) AS s) AS g
    UNION ALL
    SELECT r.queue, g.group_key, g.wrapped, g.paused, r.visited + (NOT g.paused)::int
      FROM ring AS r
     CROSS JOIN LATERAL (
        SELECT s.group_key, s.wrapped,
               EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'group' AND p.name = s.group_key) AS paused
          FROM ((SELECT j.group_key, false AS wrapped FROM dalsegno.jobs AS j
                  WHERE NOT r.wrapped AND j.state = 'ready' AND j.crash_count < 2 AND j.queue = r.queue AND j.group_key > r.group_key
                  ORDER BY j.group_key LIMIT 1)
                UNION ALL
                (SELECT j.group_key, true FROM dalsegno.jobs AS j
                  WHERE j.state = 'ready' AND j.crash_count < 2 AND j.queue = r.queue
                    AND j.group_key > CASE WHEN r.wrapped THEN r.group_key ELSE '' END AND j.group_key <= $7::text
                  ORDER BY j.group_key LIMIT 1)
                LIMIT 1) AS s) AS g
     WHERE r.visited < 32
),
turns AS MATERIALIZED (
    SELECT r.queue, r.group_key, r.visited AS pos FROM ring AS r WHERE NOT r.paused
),
share AS MATERIALIZED (
    -- Twice the even share, so that enough candidates are left when a concurrent claim takes the same ones.
    SELECT ceil(2.0 * $1::bigint / (count(*) + 1))::bigint AS jobs, count(*) > 0 AS by_turns FROM turns
),
plain AS (
    SELECT j.id
      FROM open_queues AS q
     CROSS JOIN LATERAL (
        SELECT u.id FROM (
            SELECT j.id FROM dalsegno.jobs AS j
             WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NULL AND j.queue = q.name AND j.priority < $4::smallint AND j.kind = ANY ($8::text[])
             ORDER BY j.priority, j.run_at, j.id LIMIT 1000 FOR UPDATE SKIP LOCKED) AS u
        UNION ALL
        SELECT u.id FROM (
            SELECT j.id FROM dalsegno.jobs AS j
             WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NULL AND j.queue = q.name AND j.kind = ANY ($8::text[])
               AND (j.priority, j.run_at, j.id) >= ($4::smallint, $5::timestamptz, $6::bigint)
             ORDER BY j.priority, j.run_at, j.id LIMIT 1000 FOR UPDATE SKIP LOCKED) AS u) AS j
     WHERE NOT (SELECT by_turns FROM share)
     LIMIT $1::bigint
),
candidates AS (
    SELECT c.id, c.pos
      FROM (SELECT j.id, j.priority, j.rank, t.pos
              FROM turns AS t
             CROSS JOIN LATERAL (
                SELECT g.id, g.priority, row_number() OVER () AS rank
                  FROM (SELECT p.id, p.priority
                          FROM (SELECT j.id, j.priority FROM dalsegno.jobs AS j
                                 WHERE j.state = 'ready' AND j.crash_count < 2 AND j.queue = t.queue AND j.group_key = t.group_key AND j.kind = ANY ($8::text[])
                                 ORDER BY j.priority, j.run_at, j.id LIMIT 1000) AS p
                         LIMIT (SELECT jobs FROM share)) AS g) AS j
            UNION ALL
            SELECT j.id, j.priority, j.rank, 33
              FROM open_queues AS q
             CROSS JOIN LATERAL (
                SELECT g.id, g.priority, row_number() OVER () AS rank
                  FROM (SELECT p.id, p.priority
                          FROM (SELECT j.id, j.priority FROM dalsegno.jobs AS j
                                 WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NULL AND j.queue = q.name AND j.kind = ANY ($8::text[])
                                 ORDER BY j.priority, j.run_at, j.id LIMIT 1000) AS p
                         LIMIT (SELECT jobs FROM share)) AS g) AS j
             WHERE (SELECT by_turns FROM share)
            UNION ALL
            SELECT j.id, j.priority, j.rank, 34
              FROM ring AS r
             CROSS JOIN LATERAL (
                SELECT u.id, u.priority, row_number() OVER () AS rank
                  FROM (SELECT j.id, j.priority, j.kind, j.group_key FROM dalsegno.jobs AS j
                         WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NOT NULL AND j.queue = r.queue AND j.priority < 100
                         ORDER BY j.priority, j.run_at, j.id LIMIT 100) AS u
                 WHERE u.kind = ANY ($8::text[])
                   AND NOT EXISTS (SELECT FROM turns AS t WHERE t.queue = r.queue AND t.group_key = u.group_key OFFSET 0)
                   AND NOT EXISTS (SELECT FROM dalsegno.pauses AS p WHERE p.scope = 'group' AND p.name = u.group_key OFFSET 0)) AS j
             WHERE r.visited = 32) AS c
     ORDER BY c.priority, c.rank, c.pos, c.id
),
by_turns AS (
    SELECT c.id
      FROM candidates AS c
     CROSS JOIN LATERAL (SELECT FROM dalsegno.jobs AS j WHERE j.id = c.id AND j.state = 'ready' FOR UPDATE SKIP LOCKED) AS locked
     WHERE (SELECT s.by_turns FROM share AS s)
     LIMIT $1::bigint
),
claimed AS (
    UPDATE dalsegno.jobs AS j
       SET state = 'running', lease = nextval('dalsegno.leases') + floor(random() * 1048576)::bigint, worker_id = $3::uuid, claimed_at = clock_timestamp(), attempt = j.attempt + 1
     WHERE j.id = ANY (ARRAY(SELECT p.id FROM plain AS p UNION ALL SELECT b.id FROM by_turns AS b))
    RETURNING j.id, j.lease, j.queue, j.kind, j.lane_id, j.group_key, j.priority, j.attempt, j.max_attempts, j.crash_count,
              j.run_at, j.enqueued_at, j.claimed_at
),
counted AS (
    INSERT INTO dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
    SELECT c.queue, c.kind, 'claim', 'ready', 'running', count(*) FROM claimed AS c GROUP BY c.queue, c.kind
)
SELECT c.id AS "id!", c.lease AS "lease!", c.queue AS "queue!", c.kind AS "kind!", l.key AS "lane?", c.group_key AS "group_key?",
       c.priority AS "priority!", c.attempt AS "attempt!", c.max_attempts AS "max_attempts!", c.run_at AS "run_at!", c.claimed_at AS "claimed_at!",
       p.payload::text AS "payload!", p.headers::text AS "headers?", p.timeout_secs AS "timeout_secs?",
       c.group_key IS NOT NULL AND (c.priority >= 100 OR EXISTS (SELECT FROM turns AS t WHERE t.queue = c.queue AND t.group_key = c.group_key)) AS "in_turn!"
  FROM claimed AS c
 CROSS JOIN LATERAL (SELECT p.payload, p.headers, p.timeout_secs FROM dalsegno.job_payloads AS p WHERE p.job_id = c.id OFFSET 0) AS p
  LEFT JOIN LATERAL (SELECT l.key FROM dalsegno.lanes AS l WHERE l.id = c.lane_id OFFSET 0) AS l ON true
UNION ALL
(SELECT 0, 0, r.queue, '', NULL, r.group_key, 0::smallint, 0::smallint, 0::smallint, now(), now(), '', NULL, NULL, true
   FROM ring AS r
  WHERE r.visited = 32
    AND NOT EXISTS (SELECT FROM candidates AS c WHERE c.pos <= 32)
  -- The nearest one, so that no group of another queue is left out.
  ORDER BY r.wrapped, r.group_key LIMIT 1)
