insert into dalsegno.usage (called_at, campaign_id, cost_micros, purpose, outcome, agent, provider, model, provider_message_id) values
  (now(), '00000000-0000-7000-8000-000000000001', 12, 'turn', 'done', 'copywriter', 'sim', 'sim', 'msg-1'),
  (now(), '00000000-0000-7000-8000-000000000001', 1, 'facts', 'done', 'writer', 'sim', 'sim-1', 'facts-1');
