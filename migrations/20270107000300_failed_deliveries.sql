-- no-transaction
-- For the overview and the doctor, which count the deliveries that were given up, by webhook. Few rows have this state.
create index concurrently if not exists webhook_deliveries_failed on dalsegno.webhook_deliveries (webhook_id, ended_at)
  where state = 'failed';
