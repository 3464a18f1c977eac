-- A run that was put off for its provider, and one of a worker of an older version.
insert into dalsegno.runs (job_id, lease, started_at, attempt, outcome, queue, kind, error, wait_cause)
values (9000001, 9000001, now(), 1, 'snooze', 'turns', 'run_turn', '503 Service Unavailable', 'provider'),
       (9000001, 9000002, now(), 1, 'snooze', 'turns', 'run_turn', '503 Service Unavailable', null);
