insert into dalsegno.erasures (id, campaign_id, asked_at, ended_at, reason, removed)
values ('00000000-0000-7000-8000-0000000000e1', '00000000-0000-7000-8000-000000000001', now(), now(), 'by request', '{"sessions": 1}');
insert into dalsegno.erased_sessions (erasure_id, session_id, external_session_id)
values ('00000000-0000-7000-8000-0000000000e1', '00000000-0000-7000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000e3');
insert into dalsegno.erasure_hosts (erasure_id, host, swept_at, folders, bytes)
values ('00000000-0000-7000-8000-0000000000e1', 'host-1', now(), 1, 1000);
