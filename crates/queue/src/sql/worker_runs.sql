-- Lists what workers run, and what they have run. $1 workers. $2 only runs that ended later. $3 rows of each at most.
-- $4 only runs that began then or earlier, or NULL for all.
(SELECT j.worker_id AS "worker_id!", j.id AS "job_id!", j.kind AS "kind!", l.key AS "lane?", j.claimed_at AS "started_at!",
        NULL::timestamptz AS "ended_at?", NULL::text AS "outcome?"
   FROM dalsegno.jobs AS j
   LEFT JOIN dalsegno.lanes AS l ON l.id = j.lane_id
  WHERE j.state = 'running' AND j.worker_id = ANY ($1::uuid[])
    AND j.claimed_at <= coalesce($4::timestamptz, 'infinity')
  ORDER BY j.claimed_at DESC LIMIT $3)
UNION ALL
(SELECT r.worker_id, r.job_id, r.kind, l.key, r.started_at, r.ended_at, r.outcome::text
   FROM dalsegno.runs AS r
   LEFT JOIN dalsegno.lanes AS l ON l.id = r.lane_id
  WHERE r.ended_at > $2::timestamptz AND r.started_at <= coalesce($4::timestamptz, 'infinity')
    AND r.worker_id = ANY ($1::uuid[]) AND r.started_at IS NOT NULL
  ORDER BY r.ended_at DESC LIMIT $3)
