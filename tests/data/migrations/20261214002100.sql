insert into dalsegno.bulk_actions (id, created_at, started_at, ended_at, job_id, cursor, matched, done, skipped, action, state, reason, filter)
values ('019aa000-0000-7000-8000-0000000000b1', '2026-11-22 10:00+00', '2026-11-22 10:00:01+00', '2026-11-22 10:00:02+00', 1,
        '019aa000-0000-7000-8000-000000000001', 3, 2, 1, 'cancel', 'done', 'by a request', '{"agent": "copywriter"}');
insert into dalsegno.bulk_actions (id, created_at, job_id, matched, action, reason, filter)
values ('019aa000-0000-7000-8000-0000000000b2', '2026-11-22 11:00+00', 2, 5, 'retry', 'by a request', '{}');
insert into dalsegno.bulk_actions (id, created_at, ended_at, job_id, matched, action, state, reason, filter, error)
values ('00000000-0000-7000-8000-0000000000b1', now(), now(), 900001, 3, 'cancel', 'failed', 'x', '{}', 'it failed 20 times');
