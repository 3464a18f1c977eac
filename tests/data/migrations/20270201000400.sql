-- A run that its schedule has begun.
insert into dalsegno.cleanup_runs (job_id, lease, started_at, kind, requested_by) values (20270201, 1, now(), 'sessions', 'schedule');
