-- no-transaction
-- The prompts that the sessions of an agent were made with. Neither column changes, so updates of a turn do not touch the index.
--
-- Adds: sessions_by_agent.
create index concurrently if not exists sessions_by_agent on dalsegno.sessions (agent_type, prompt_hash);
