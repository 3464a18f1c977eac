-- Leases are not given out again, whatever becomes of their sequence.
--
-- A standby that takes over without the last of the log, or a database that is restored, gives the numbers of jobs and leases out
-- again that it has not heard of. A run of a worker that has outlived this could then pass for the run of another job. So a lease
-- is a number of the sequence, as before in the order of the claims, and twenty random bits.
do $$
begin
  execute format('alter sequence dalsegno.leases increment by 1048576 restart with %s',
                 ((select last_value from dalsegno.leases) + 1) * 1048576);
end
$$;
comment on sequence dalsegno.leases is
  'Every claim draws a new number from here, and adds a random one below 2^20; the sum fences all later writes of that run.';
