-- no-transaction
-- Earlier versions count, too.
create index concurrently if not exists memory_versions_by_author on dalsegno.memory_versions (campaign_id, author) where origin = 'agent';
