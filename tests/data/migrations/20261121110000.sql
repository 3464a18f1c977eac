insert into dalsegno.campaign_spending (campaign_id, shard, spent_micros, spent_tokens)
values ('00000000-0000-7000-8000-000000000001', 3, 12, 340);
update dalsegno.tasks set state = 'running', started_at = now() where id = '00000000-0000-7000-8000-000000000004';
