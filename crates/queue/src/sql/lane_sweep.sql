-- Pays owed promotions: lanes whose row was busy when their head ended, and lanes whose head stepped back into line.
-- After any statement that answers lane_owed (or in_lane), and every second as a net.
-- $1 integer  lanes at most
-- Result: promoted.
SELECT dalsegno.sweep_lanes($1::integer) AS "promoted!"
