insert into dalsegno.failovers (campaign_id, failed_at, since, failures, agent, instance)
values ('00000000-0000-7000-8000-000000000001', '2026-11-21', '2026-11-21', 0, 'copywriter', 'main');
insert into dalsegno.resting_logins (provider, login, until, why) values ('claude', 'main', '2026-11-21', 'its limit is used up');
