select dalsegno.pause('queue', 'turns', 'a sample');
select dalsegno.hold_lane('sample-lane', 'a sample');
select dalsegno.cancel(min(id)) from dalsegno.jobs;
-- A job that waits for a signal, and one that was signalled.
select dalsegno.await_signal(array[e.job_id])
  from dalsegno.enqueue(kind => 'sample', payload => '{"n": 5}', queue => 'turns', lane => 'sample-lane', run_at => dalsegno.never()) as e;
select dalsegno.signal(array[e.job_id])
  from dalsegno.enqueue(kind => 'sample', payload => '{"n": 6}', queue => 'turns', run_at => dalsegno.never()) as e,
       lateral (select dalsegno.await_signal(array[e.job_id])) as waiting;
