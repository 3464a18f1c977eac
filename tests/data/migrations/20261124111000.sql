insert into dalsegno.bulk_actions (id, created_at, ended_at, job_id, matched, action, state, reason, filter, error)
values ('00000000-0000-7000-8000-0000000000b1', now(), now(), 900001, 3, 'cancel', 'failed', 'x', '{}', 'it failed 20 times');
