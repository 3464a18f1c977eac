-- The last word of a worker, after its jobs have ended or were given back. What it still runs counts as lost.
-- $1 uuid
UPDATE dalsegno.workers SET gone_at = now(), gone_reason = 'stopped', waiting = false WHERE id = $1::uuid AND gone_at IS NULL
