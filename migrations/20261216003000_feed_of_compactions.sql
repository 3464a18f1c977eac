-- no-transaction
-- A person who asked for a compaction is answered with the event of its job, in a campaign with however many other events.
--
-- Adds: an index on the events session.compaction_not_needed alone. Other events do not write to it.
create index concurrently feed_compactions_not_needed on dalsegno.feed (session_id, id) where kind = 'session.compaction_not_needed';
