-- no-transaction
-- Sessions show their cost, and `turn show` lists the calls of a turn, without reading the other calls of the campaign. The index begins
-- with the campaign, so it replaces usage_by_campaign: a call is not written to one more index.
--
-- Adds: usage_by_session.
create index concurrently if not exists usage_by_session on dalsegno.usage (campaign_id, session_id, turn);
