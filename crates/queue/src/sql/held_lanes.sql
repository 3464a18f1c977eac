-- Lists held lanes, those that are held longest first, with the number of their jobs in order, at most a thousand. $1 lanes at most.
-- The head and the jobs behind it have an index each. The order keeps the planner on the second one if most jobs belong to a few lanes.
SELECT l.key AS "lane!", l.hold_reason AS "reason!", l.held_at AS "held_at?",
       (SELECT count(*) FROM (
            SELECT 1 FROM dalsegno.jobs AS j WHERE j.lane_id = l.id AND j.lane_seq IS NOT NULL AND j.state <> 'blocked'
            UNION ALL
            (SELECT 1 FROM dalsegno.jobs AS j WHERE j.lane_id = l.id AND j.state = 'blocked' ORDER BY j.lane_seq LIMIT 1000)
            LIMIT 1000) AS own) AS "jobs!"
  FROM dalsegno.lanes AS l WHERE l.hold_reason IS NOT NULL ORDER BY l.held_at, l.key LIMIT $1
