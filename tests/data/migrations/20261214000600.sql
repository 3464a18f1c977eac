insert into dalsegno.campaigns (id, name, brief) values ('00000000-0000-7000-8000-000000000001', 'Harbour', 'Ten parts.');
insert into dalsegno.campaign_budgets (campaign_id, limit_micros) values ('00000000-0000-7000-8000-000000000001', 5000000);
insert into dalsegno.campaigns (id, name) values ('00000000-0000-7000-8000-000000000006', 'Made elsewhere');
insert into dalsegno.campaign_spending (campaign_id, shard, spent_micros, spent_tokens)
values ('00000000-0000-7000-8000-000000000001', 3, 12, 340);
