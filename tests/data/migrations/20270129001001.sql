-- Another day with a call without a price.
insert into dalsegno.ledger_days (campaign_id, calls, cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, day,
       agent, provider, model, purpose, calls_without_price)
select campaign_id, 1, 0, 1, 1, 0, 0, called_at::date - 2, agent, provider, model, purpose, 1 from dalsegno.usage order by id limit 1;
