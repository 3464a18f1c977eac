insert into dalsegno.pauses (scope, name, reason) values ('group', 'a-group', 'a sample');
insert into dalsegno.workers (id, lease_until, slots, queues) values ('00000000-0000-4000-8000-000000000001', now(), 4, '{turns}');
insert into dalsegno.dead_jobs (id, enqueued_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, reason, payload)
values (0, now(), 1, 100, 20, 20, 0, 'turns', 'sample', 'exhausted', '{}');
insert into dalsegno.cancel_requests (job_id, reason) values (0, 'a sample');
insert into dalsegno.transition_totals (total, queue, kind, event, from_state, to_state) values (1, 'turns', 'sample', 'fail', 'running', 'dead');
select ready, running from dalsegno.queue_load;
