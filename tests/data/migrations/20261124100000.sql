-- One that waits for a signal, and one that has had it.
select dalsegno.await_signal(array[e.job_id])
  from dalsegno.enqueue(kind => 'sample', payload => '{"n": 5}', queue => 'turns', lane => 'sample-lane', run_at => dalsegno.never()) as e;
select dalsegno.signal(array[e.job_id])
  from dalsegno.enqueue(kind => 'sample', payload => '{"n": 6}', queue => 'turns', run_at => dalsegno.never()) as e,
       lateral (select dalsegno.await_signal(array[e.job_id])) as waiting;
