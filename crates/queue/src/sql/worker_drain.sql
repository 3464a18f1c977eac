-- The worker claims nothing any more (claims check it).
-- $1 uuid
UPDATE dalsegno.workers SET draining = true, waiting = false WHERE id = $1::uuid AND gone_at IS NULL
