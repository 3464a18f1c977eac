insert into dalsegno.usage (called_at, campaign_id, cost_micros, purpose, outcome, agent, provider, model, provider_message_id)
select now(), id, 1, 'facts', 'done', 'writer', 'sim', 'sim-1', 'facts-1' from dalsegno.campaigns limit 1;
