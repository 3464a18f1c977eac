-- Forgets workers that have been gone for long. $1 double precision seconds (at least a day, see rescue.sql). Result: deleted.
WITH gone AS (
    DELETE FROM dalsegno.workers AS w WHERE w.gone_at < now() - make_interval(secs => greatest($1::double precision, 90000)) RETURNING 1
)
SELECT count(*) AS "deleted!" FROM gone
