-- no-transaction
-- An erasure finds the stored outputs of its campaign without reading the others. An output names its campaign as campaign_id, at any depth.
create index concurrently if not exists operation_keys_by_campaign on dalsegno.operation_keys
  using gin (jsonb_path_query_array(output, 'strict $.**.campaign_id'));
