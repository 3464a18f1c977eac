-- Changes the priority of a job that does not run.
-- $1 bigint    job
-- $2 smallint  the new priority
-- Result: the priority before; no row if the job runs or has ended.
--
-- The lock comes before the change: a claim may take the job at this moment, and then the row no longer matches.
UPDATE dalsegno.jobs AS j SET priority = $2::smallint
  FROM (SELECT w.id, w.priority FROM dalsegno.jobs AS w WHERE w.id = $1::bigint AND w.state <> 'running' FOR UPDATE) AS waiting
 WHERE j.id = waiting.id
RETURNING waiting.priority::smallint AS "before!"
