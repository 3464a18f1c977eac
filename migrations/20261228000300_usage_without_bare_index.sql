-- no-transaction
-- usage_of_session begins with the same columns.
drop index concurrently if exists dalsegno.usage_by_session;
