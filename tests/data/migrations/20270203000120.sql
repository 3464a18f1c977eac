-- Holds and releases a lane with a job.
do $$ declare
  job bigint := (select e.job_id from dalsegno.enqueue('sample', lane => 'sample-to-hold') as e);
begin
  perform dalsegno.hold_lane('sample-to-hold', 'a look');
  if (select j.state from dalsegno.jobs as j where j.id = job) <> 'blocked' then
    raise exception 'the job of a held lane is ready';
  end if;
  perform dalsegno.release_lane('sample-to-hold');
  if (select j.state from dalsegno.jobs as j where j.id = job) <> 'ready' then
    raise exception 'the job of a released lane is not ready';
  end if;
  perform dalsegno.cancel(job, 'sample');
end $$;
