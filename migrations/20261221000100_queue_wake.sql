-- The job queue: the early end of a wait that a job was put into by its worker.
--
-- A waiting head keeps its place, and its lane waits with it. A job for dalsegno.signal() gives its place up, so the two are not the same.

create function dalsegno.end_snooze(job_id bigint) returns text language plpgsql as $body$
begin
  perform from dalsegno.jobs as j
    where j.id = end_snooze.job_id and j.state = 'scheduled' and j.wait_reason = 'snooze' for update skip locked;
  if found then
    update dalsegno.jobs as j set run_at = clock_timestamp() where j.id = end_snooze.job_id and j.run_at > clock_timestamp();
    return 'ended';
  end if;
  return case when exists (select from dalsegno.jobs as j
                            where j.id = end_snooze.job_id and j.state = 'scheduled' and j.wait_reason = 'snooze')
              then 'busy' else 'over' end;
end
$body$;
comment on function dalsegno.end_snooze(bigint) is
  'Makes a job due that its worker has put off. Never waits: ended; busy where another transaction has locked the job; over where the job '
  'is not put off. The caller calls dalsegno.promote_due() afterwards.';
