-- no-transaction
-- usage_by_session serves the queries of usage_by_campaign.
--
-- Removes: usage_by_campaign. Older versions read the ledger as before.
drop index concurrently if exists dalsegno.usage_by_campaign;
