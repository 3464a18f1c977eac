insert into dalsegno.experiment_budgets (campaign_id, limit_micros, spent_micros) select id, 5000000, 1200 from dalsegno.campaigns order by id limit 1;
insert into dalsegno.reruns (id, session_id, campaign_id, created_at, turn, call, number, provider, model, temperature)
select '019aa2f4-0000-7000-8000-0000000000aa', id, campaign_id, now(), 1, 1, 1, 'sim', 'sim-1', 0.5 from dalsegno.sessions order by id limit 1;
