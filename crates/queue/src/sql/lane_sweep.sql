-- Does owed promotions: for lanes whose row was locked when their head ended, and lanes whose head stepped back into line.
-- Called after each statement that returns lane_owed (or in_lane), and every second as a safety net.
-- $1 integer  lanes at most
-- Result: promoted.
SELECT dalsegno.sweep_lanes($1::integer) AS "promoted!"
