-- Applies cancel requests whose job stopped running before its worker saw them. A safety net, run every few seconds.
-- $1 integer  requests at most. Result: applied.
SELECT dalsegno.apply_cancel_requests($1::integer) AS "applied!"
