-- no-transaction
-- What an agent has written counts as long as it is stored, so also what was revoked or has expired. One that was left half done by a
-- build that was cut off is as good as none, and takes no harm.
create index concurrently if not exists memory_items_by_author_stored on dalsegno.memory_items (campaign_id, author) include (bytes)
  where origin = 'agent';
