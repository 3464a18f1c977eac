-- Makes due jobs ready and does owed promotions, in one round trip. Runs every second, and at next_run_in_secs if that is sooner.
-- $1 integer  jobs at most, and lanes at most; moved or promoted = $1 means: call again
-- Result: moved, promoted, next_run_in_secs (NULL: no job is scheduled for later).
--
-- The last part sees the table as it was before the first part. It ignores jobs that were due then: they have been moved, or another
-- transaction has locked them, and waiting 0 seconds would loop until that transaction commits.
WITH due AS MATERIALIZED (
    SELECT dalsegno.promote_due($1::integer) AS moved
), swept AS MATERIALIZED (
    -- After the due jobs: jobs that joined a busy lane are owed a promotion, too.
    SELECT dalsegno.sweep_lanes($1::integer) AS promoted FROM due
)
SELECT d.moved AS "moved!", s.promoted AS "promoted!",
       (SELECT extract(epoch FROM j.run_at - clock_timestamp())::double precision FROM dalsegno.jobs AS j
         WHERE j.state = 'scheduled' AND j.run_at > now() ORDER BY j.run_at, j.id LIMIT 1) AS "next_run_in_secs?"
  FROM due AS d CROSS JOIN swept AS s
