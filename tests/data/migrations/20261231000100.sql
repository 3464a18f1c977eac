insert into dalsegno.reruns (id, session_id, campaign_id, created_at, turn, call, number, provider, model)
select gen_random_uuid(), id, campaign_id, now(), 1, 1, 99, 'sim', 'sim' from dalsegno.sessions order by id limit 1;
-- Fails if the rerun is not counted.
select 1 / count(*) from dalsegno.reruns as r where dalsegno.contents_of_campaign(r.campaign_id) ? 'reruns';
