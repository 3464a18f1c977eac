-- Marks a worker as stopped, after its jobs have ended or were given back. Jobs that it still runs count as lost.
-- $1 uuid
UPDATE dalsegno.workers SET gone_at = now(), gone_reason = 'stopped', waiting = false WHERE id = $1::uuid AND gone_at IS NULL
