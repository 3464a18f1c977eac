-- Lists the names of the lanes that have jobs, and of those that are held, in the order in which the lanes were made.
-- $1 boolean  held lanes only
-- $2 text     last lane of the page before; '' begins
-- $3 bigint   lanes at most
--
-- The order is that of the indexes of jobs in lanes, which lead from one lane to the next. In alphabetical order, all lanes with jobs would have
-- to be read and sorted for each page.
-- A lane with jobs has a head. Between two heads, and if its promotion was forgotten, it has only blocked jobs.
WITH RECURSIVE start AS MATERIALIZED (
    SELECT CASE WHEN $2::text = '' THEN 0 ELSE (SELECT l.id FROM dalsegno.lanes AS l WHERE l.key = $2::text) END AS lane_id
),
held AS MATERIALIZED (
    SELECT l.id AS lane_id FROM dalsegno.lanes AS l WHERE l.hold_reason IS NOT NULL
),
blocked (lane_id, n) AS (
    SELECT j.lane_id, 1
      FROM start AS s
     CROSS JOIN LATERAL (SELECT j.lane_id FROM dalsegno.jobs AS j WHERE j.state = 'blocked' AND j.lane_id > s.lane_id ORDER BY j.lane_id LIMIT 1) AS j
     WHERE NOT $1::boolean
    UNION ALL
    SELECT j.lane_id, b.n + 1
      FROM blocked AS b
     CROSS JOIN LATERAL (SELECT j.lane_id FROM dalsegno.jobs AS j WHERE j.state = 'blocked' AND j.lane_id > b.lane_id ORDER BY j.lane_id LIMIT 1) AS j
     WHERE b.n < $3::bigint
),
heads AS (
    SELECT j.lane_id
      FROM start AS s
     CROSS JOIN LATERAL (
        SELECT j.lane_id FROM dalsegno.jobs AS j WHERE j.lane_seq IS NOT NULL AND j.state <> 'blocked' AND j.lane_id > s.lane_id
         -- No page is as long. With the parameter alone, the planner expects a tenth of the table and sorts it.
         ORDER BY j.lane_id LIMIT 1000) AS j
     WHERE NOT $1::boolean
     LIMIT $3::bigint
),
page AS (
    SELECT f.lane_id
      FROM (SELECT h.lane_id FROM held AS h UNION SELECT b.lane_id FROM blocked AS b UNION SELECT d.lane_id FROM heads AS d) AS f
     WHERE f.lane_id > (SELECT s.lane_id FROM start AS s)
     ORDER BY f.lane_id LIMIT $3::bigint
)
SELECT l.key AS "name!"
  FROM page AS p
 CROSS JOIN LATERAL (SELECT l.key FROM dalsegno.lanes AS l WHERE l.id = p.lane_id OFFSET 0) AS l
 ORDER BY p.lane_id
