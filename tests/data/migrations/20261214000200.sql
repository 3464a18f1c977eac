-- Jobs in several states, with what belongs to them.
select dalsegno.enqueue(kind => 'sample', payload => '{"n": 1}', queue => 'turns');
select dalsegno.enqueue(kind => 'sample', payload => '{"n": 2}', queue => 'turns', lane => 'sample-lane', group_key => 'sample-group');
select dalsegno.enqueue(kind => 'sample', payload => '{"n": 3}', queue => 'turns', lane => 'sample-lane', idempotency_key => 'sample-key');
select dalsegno.enqueue(kind => 'sample', payload => '{"n": 4}', run_at => now() + interval '1 day', headers => '{"traceparent": "00-0"}');
