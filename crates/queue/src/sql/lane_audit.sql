-- Finds lanes that have blocked jobs but no head and no hold, for any cause, and lists them for lane_sweep.sql. A safety net,
-- run about once a minute. It steps from lane to lane, so its cost grows with the lanes that it visits.
-- $1 bigint   lane to continue after; 0 to begin
-- $2 integer  lanes to visit
-- Result: last_lane (NULL: the end was reached, begin again with 0), listed = number of lanes found.
WITH RECURSIVE visited (lane_id, n) AS (
    (SELECT j.lane_id, 1 FROM dalsegno.jobs AS j WHERE j.state = 'blocked' AND j.lane_id > $1::bigint ORDER BY j.lane_id LIMIT 1)
    UNION ALL
    SELECT f.lane_id, v.n + 1
      FROM visited AS v
     CROSS JOIN LATERAL (SELECT j.lane_id FROM dalsegno.jobs AS j WHERE j.state = 'blocked' AND j.lane_id > v.lane_id ORDER BY j.lane_id LIMIT 1) AS f
     WHERE v.n < $2::integer
),
stuck AS (
    INSERT INTO dalsegno.lane_sweeps (lane_id)
    SELECT v.lane_id
      FROM visited AS v
     CROSS JOIN LATERAL (SELECT l.id FROM dalsegno.lanes AS l WHERE l.id = v.lane_id AND l.hold_reason IS NULL OFFSET 0) AS l
     WHERE NOT EXISTS (SELECT FROM dalsegno.jobs AS h WHERE h.lane_id = v.lane_id AND h.lane_seq IS NOT NULL AND h.state <> 'blocked' OFFSET 0)
    RETURNING lane_id
)
SELECT CASE WHEN count(*) < $2::integer THEN NULL ELSE max(v.lane_id) END AS "last_lane?", (SELECT count(*) FROM stuck) AS "listed!" FROM visited AS v
