insert into dalsegno.usage (called_at, campaign_id, session_id, turn, cost_micros, purpose, outcome, agent, provider, model)
select now(), campaign_id, id, 1, 7, 'turn', 'done', agent_type, provider, model from dalsegno.sessions order by id limit 1;
