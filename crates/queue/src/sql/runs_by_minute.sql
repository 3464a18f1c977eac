-- Counts the runs of a queue that have ended within the last hours, in 60 steps. $1 queue. $2 runs at most, the newest. $3 hours.
-- `now()`, because an index is not searched for a moment that changes during the statement.
SELECT floor(extract(epoch FROM now() - r.ended_at) / (60 * $3))::integer * $3 AS "minutes_ago!",
       count(*) FILTER (WHERE r.outcome = 'done') AS "done!", count(*) FILTER (WHERE r.outcome = 'failed') AS "failed!",
       (sum(count(*)) OVER ())::bigint AS "n_read!"
  FROM (SELECT o.ended_at, o.outcome FROM dalsegno.runs AS o
         -- Rows are compared, because only the index by queue and end can answer that. For a rare queue, the planner would
         -- otherwise read the runs of all queues by their end.
         WHERE (o.queue, o.ended_at) > ($1, now() - make_interval(hours => $3)) AND (o.queue, o.ended_at) <= ($1, now())
         ORDER BY o.queue DESC, o.ended_at DESC LIMIT $2) AS r
 GROUP BY 1 ORDER BY 1
