-- Marks a worker as draining. Claims check the mark, so the worker gets no further jobs.
-- $1 uuid
UPDATE dalsegno.workers SET draining = true, waiting = false WHERE id = $1::uuid AND gone_at IS NULL
