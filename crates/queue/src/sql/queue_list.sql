-- Lists the queues: jobs per state (from the counters), age of the oldest ready job, pause, live workers.
WITH counted AS (
    SELECT c.queue, sum(c.jobs) FILTER (WHERE c.state = 'ready') AS ready, sum(c.jobs) FILTER (WHERE c.state = 'running') AS running,
           sum(c.jobs) FILTER (WHERE c.state = 'scheduled') AS scheduled, sum(c.jobs) FILTER (WHERE c.state = 'blocked') AS blocked,
           sum(c.jobs) FILTER (WHERE c.state = 'held') AS held, sum(c.jobs) FILTER (WHERE c.state = 'dead') AS dead
      FROM dalsegno.job_counts AS c GROUP BY c.queue
),
names AS (
    SELECT c.queue FROM counted AS c UNION SELECT p.name FROM dalsegno.pauses AS p WHERE p.scope = 'queue'
    UNION SELECT unnest(w.queues) FROM dalsegno.workers AS w WHERE w.gone_at IS NULL
)
SELECT n.queue AS "queue!", coalesce(c.ready, 0)::bigint AS "ready!", coalesce(c.running, 0)::bigint AS "running!", coalesce(c.scheduled, 0)::bigint AS "scheduled!",
       coalesce(c.blocked, 0)::bigint AS "blocked!", coalesce(c.held, 0)::bigint AS "held!", coalesce(c.dead, 0)::bigint AS "dead!",
       extract(epoch FROM now() - least(o.plain, o.grouped))::double precision AS "oldest_ready_secs?",
       p.paused_at AS "paused_at?", p.reason AS "pause_reason?",
       (SELECT count(*) FROM dalsegno.workers AS w WHERE w.gone_at IS NULL AND w.lease_until > now() AND n.queue = ANY (w.queues)) AS "workers!"
  FROM names AS n
  LEFT JOIN counted AS c ON c.queue = n.queue
  LEFT JOIN dalsegno.pauses AS p ON p.scope = 'queue' AND p.name = n.queue
 CROSS JOIN LATERAL (
    -- The first hundred jobs of the claim order, with and without a group: exact enough for an alert, without a full scan.
    SELECT (SELECT min(s.run_at) FROM (SELECT j.run_at FROM dalsegno.jobs AS j WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key IS NULL
                                          AND j.queue = n.queue ORDER BY j.priority, j.run_at, j.id LIMIT 100) AS s) AS plain,
           (SELECT min(s.run_at) FROM (SELECT j.run_at FROM dalsegno.jobs AS j WHERE j.state = 'ready' AND j.crash_count < 2 AND j.group_key > ''
                                          AND j.queue = n.queue ORDER BY j.group_key, j.priority, j.run_at, j.id LIMIT 100) AS s) AS grouped) AS o
 ORDER BY n.queue
