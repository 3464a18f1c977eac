-- Writes a call into the ledger, unless its response is already recorded. Result: the number of the new row.
insert into dalsegno.usage
       (called_at, campaign_id, task_id, session_id, turn, cost_micros, input_tokens, output_tokens, cache_read_tokens,
        cache_creation_tokens, first_byte_ms, total_ms, purpose, outcome, agent, provider, model, provider_message_id, price)
select c.called_at, c.campaign_id, c.task_id, c.session_id, c.turn, c.cost_micros, c.input, c.output, c.cache_read,
       c.cache_creation, c.first_byte_ms, c.total_ms, c.purpose, c.outcome, c.agent, c.provider, c.model, c.provider_message_id,
       c.price
  from jsonb_to_record($1) as c (
         called_at timestamptz, campaign_id uuid, task_id uuid, session_id uuid, turn integer, cost_micros bigint, input bigint,
         output bigint, cache_read bigint, cache_creation bigint, first_byte_ms integer, total_ms integer, purpose text,
         outcome text, agent text, provider text, model text, provider_message_id text, price jsonb)
    on conflict (provider, provider_message_id) where provider_message_id is not null do nothing
returning id
