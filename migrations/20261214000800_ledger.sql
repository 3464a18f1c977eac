-- The ledger: tokens and cost of each call to a provider, append-only. A provider's answer is charged once: index
-- usage_once_per_answer. Nothing removes from it.

create function dalsegno.is_consistent_call(purpose text, outcome text, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return purpose in ('turn', 'summary', 'facts') and outcome in ('done', 'failed', 'interrupted') and least_count >= 0;
end
$body$;
comment on function dalsegno.is_consistent_call(text, text, bigint) is 'Allowed values of a line of the ledger.';

create table dalsegno.usage (
  id bigint generated always as identity constraint usage_pkey primary key,
  called_at timestamptz not null,
  campaign_id uuid not null,
  task_id uuid,
  session_id uuid,
  turn integer,
  cost_micros bigint not null,
  input_tokens bigint,
  output_tokens bigint,
  cache_read_tokens bigint,
  cache_creation_tokens bigint,
  first_byte_ms integer,
  total_ms integer,
  purpose text not null,
  outcome text not null,
  agent text not null,
  provider text not null,
  model text not null,
  provider_message_id text,
  price jsonb,
  constraint usage_tokens_not_negative check (dalsegno.is_consistent_call(
    purpose, outcome, least(cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens)))
);
comment on table dalsegno.usage is
  'The ledger: one row per call of a provider, failed ones too. It outlives what it paid for, so it refers to nothing by key.';
comment on column dalsegno.usage.input_tokens is 'NULL: the provider did not say.';
comment on column dalsegno.usage.provider_message_id is 'The provider''s own name for its answer; the same answer is charged once.';
comment on column dalsegno.usage.price is 'The price list as it was at the time of the call; NULL: no price was configured.';

create unique index usage_once_per_answer on dalsegno.usage (provider, provider_message_id) where provider_message_id is not null;
create index usage_by_campaign on dalsegno.usage (campaign_id, id);

create trigger usage_append_only before update or delete or truncate on dalsegno.usage
  for each statement execute function dalsegno.refuse_change();
