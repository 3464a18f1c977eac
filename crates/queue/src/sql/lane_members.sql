-- The first members of a lane, in order: its head, those that are blocked, those that are scheduled for later and have no place yet.
-- Each part has an index of its own, in its order. So no more are read than are listed.
-- $1 lane · $2 members that are listed at most
WITH head AS (
    SELECT id, kind, state, lane_seq, run_at, queue, group_key FROM dalsegno.jobs WHERE lane_id = $1 AND lane_seq IS NOT NULL AND state <> 'blocked'
), blocked AS (
    SELECT id, kind, state, lane_seq, run_at, queue, group_key FROM dalsegno.jobs WHERE lane_id = $1 AND state = 'blocked' ORDER BY lane_seq LIMIT $2
), later AS (
    -- A range, so that only this index has the order. With an equality, the plan may be to read all jobs by their ids.
    SELECT id, kind, state, lane_seq, run_at, queue, group_key FROM dalsegno.jobs
     WHERE lane_id BETWEEN $1 AND $1 AND lane_seq IS NULL ORDER BY lane_id, id LIMIT $2
), member AS (
    SELECT * FROM head UNION ALL SELECT * FROM blocked UNION ALL SELECT * FROM later
)
SELECT m.id AS "id!", m.kind AS "kind!", m.state AS "state!", m.lane_seq AS "lane_seq?", m.run_at AS "run_at!",
       m.state = 'ready' AND EXISTS (SELECT FROM dalsegno.pauses AS p
          WHERE (p.scope, p.name) IN (('queue', m.queue), ('group', m.group_key))) AS "is_paused!"
  FROM member AS m ORDER BY m.lane_seq NULLS LAST, m.id LIMIT $2
