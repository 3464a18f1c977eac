-- no-transaction
-- The cost of a session is read from the index alone: a list of sessions adds up all of their calls. Replaces usage_by_session.
create index concurrently if not exists usage_of_session on dalsegno.usage (campaign_id, session_id, turn) include (cost_micros);
