-- Jobs that a worker has claimed and does not know of.
-- $1 uuid      worker
-- $2 bigint[]  the leases it knows
SELECT j.id AS "id!", j.lease AS "lease!"
  FROM dalsegno.jobs AS j
 WHERE j.worker_id = $1::uuid AND j.state = 'running' AND j.lease <> ALL ($2::bigint[])
