-- Makes due jobs ready. Every second, and at next_run_at if that is sooner.
-- $1 integer  jobs at most; moved = $1 means call again
-- Result: moved, next_run_in_secs (NULL: nothing is scheduled).
SELECT m.moved AS "moved!",
       (SELECT extract(epoch FROM j.run_at - clock_timestamp())::double precision FROM dalsegno.jobs AS j
         WHERE j.state = 'scheduled' ORDER BY j.run_at, j.id LIMIT 1) AS "next_run_in_secs?"
  FROM (SELECT dalsegno.promote_due($1::integer) AS moved) AS m
