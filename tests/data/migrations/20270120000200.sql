-- A day of the ledger.
insert into dalsegno.ledger_days (campaign_id, calls, cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, day,
       agent, provider, model, purpose)
select campaign_id, 1, cost_micros, 1, 1, 0, 0, called_at::date, agent, provider, model, purpose from dalsegno.usage order by id limit 1;
