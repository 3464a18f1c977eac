-- no-transaction
-- The runs of one queue by their end. The overview read the newest runs of all queues, so those of a busy queue hid those of turns.
create index concurrently if not exists runs_by_queue on dalsegno.runs (queue, ended_at);
