insert into dalsegno.failovers (campaign_id, failed_at, since, failures, agent, instance)
values ('00000000-0000-7000-8000-000000000001', '2026-11-21', '2026-11-21', 0, 'copywriter', 'main');
