-- Sets whether the worker waits for a notification. After setting it, claim once more, and again about 50 ms later: a commit that was
-- under way did not see the flag. Safe with synchronous_commit = off.
-- $1 uuid, $2 boolean
UPDATE dalsegno.workers SET waiting = $2::boolean WHERE id = $1::uuid AND gone_at IS NULL AND waiting <> $2::boolean
