-- Makes due jobs ready and pays owed promotions, in one round trip. Every second, and at next_run_in_secs if that is sooner.
-- $1 integer  jobs at most, and lanes at most; moved or promoted = $1 means call again
-- Result: moved, promoted, next_run_in_secs (NULL: nothing is scheduled for later than now).
--
-- The last part sees the table as it was before the first: what was due then has either been moved, or somebody has locked
-- it, and asking again at once would be asking in a loop until that somebody commits.
WITH due AS MATERIALIZED (
    SELECT dalsegno.promote_due($1::integer) AS moved
), swept AS MATERIALIZED (
    -- After the due jobs: those that joined a busy lane are owed a promotion as well.
    SELECT dalsegno.sweep_lanes($1::integer) AS promoted FROM due
)
SELECT d.moved AS "moved!", s.promoted AS "promoted!",
       (SELECT extract(epoch FROM j.run_at - clock_timestamp())::double precision FROM dalsegno.jobs AS j
         WHERE j.state = 'scheduled' AND j.run_at > now() ORDER BY j.run_at, j.id LIMIT 1) AS "next_run_in_secs?"
  FROM due AS d CROSS JOIN swept AS s
