insert into dalsegno.erasures (id, campaign_id, asked_at, reason, step)
values ('00000000-0000-7000-8000-0000000000e1', '00000000-0000-7000-8000-000000000001', now(), 'by request', 'sessions');
update dalsegno.erasures set contents = dalsegno.contents_of_campaign(campaign_id);
insert into dalsegno.erased_sessions (erasure_id, session_id, external_session_id)
values ('00000000-0000-7000-8000-0000000000e1', '00000000-0000-7000-8000-0000000000e2', '00000000-0000-4000-8000-0000000000e3');
