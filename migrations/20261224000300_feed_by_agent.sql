-- no-transaction
-- A reader that follows one agent reads the events of that agent alone.
--
-- Adds: an index on the events of each agent.
create index concurrently if not exists feed_by_agent on dalsegno.feed (agent, id) where agent is not null;
