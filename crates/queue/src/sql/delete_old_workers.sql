-- Deletes the rows of workers that left long ago and have no running job. $1 double precision seconds (at least a day: a claim may
-- commit after its worker is declared lost). Result: deleted.
--
-- A running job whose worker has no row gets the row of a lost worker, so that rescue.sql finds the job.
WITH unknown AS (
    INSERT INTO dalsegno.workers (id, lease_until, gone_at, slots, queues, host, pid, version, kinds, gone_reason)
    SELECT DISTINCT ON (j.worker_id) j.worker_id, now(), now(), 1, ARRAY[j.queue], '', 0, '', ARRAY[j.kind], 'lost'
      FROM dalsegno.jobs AS j
     WHERE j.state = 'running' AND NOT EXISTS (SELECT FROM dalsegno.workers AS w WHERE w.id = j.worker_id)
     ORDER BY j.worker_id
    ON CONFLICT (id) DO NOTHING
),
gone AS (
    DELETE FROM dalsegno.workers AS w
     WHERE w.gone_at < now() - make_interval(secs => greatest($1::double precision, 90000))
       AND NOT EXISTS (SELECT FROM dalsegno.jobs AS j WHERE j.worker_id = w.id AND j.state = 'running')
    RETURNING 1
)
SELECT count(*) AS "deleted!" FROM gone
