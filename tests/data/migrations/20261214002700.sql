insert into dalsegno.cleanup_runs (job_id, lease, started_at, ended_at, outcome, sessions, messages, bytes, events, kind, removed, kept)
values (1, 1, '2026-11-21 02:00+00', '2026-11-21 02:00:09+00', 'done', 3, 60, 4000, 5, 'sessions',
        '[{"provider": "sim", "because": "expired", "sessions": 3}]', '{"running": 1}');
insert into dalsegno.cleanup_runs (started_at, ended_at, outcome, folders, bytes, kind, host)
values ('2026-11-21 03:00+00', '2026-11-21 03:00:01+00', 'done', 2, 9000, 'folders', 'worker-1');
