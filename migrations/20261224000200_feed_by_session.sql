-- no-transaction
-- A reader that follows one session reads the events of that session alone.
--
-- Adds: an index on the events of each session.
create index concurrently if not exists feed_by_session on dalsegno.feed (session_id, id) where session_id is not null;
