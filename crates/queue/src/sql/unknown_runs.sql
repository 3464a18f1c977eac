-- Lists jobs that a worker has claimed according to the database, but does not run.
-- $1 uuid      worker
-- $2 bigint[]  the leases that the worker knows
SELECT j.id AS "id!", j.lease AS "lease!"
  FROM dalsegno.jobs AS j
 WHERE j.worker_id = $1::uuid AND j.state = 'running' AND j.lease <> ALL ($2::bigint[])
