-- Adds the deltas since the last roll-up to the totals. Any process runs it about every 5 s. One at a time is enough; two at a time
-- count nothing twice (the second does not wait for the rows that the first deletes).
-- $1 integer  rows at most
-- Result: rolled.
WITH taken AS (
    DELETE FROM dalsegno.transition_deltas AS d
     WHERE d.ctid = ANY (ARRAY(SELECT t.ctid FROM dalsegno.transition_deltas AS t LIMIT $1::integer FOR UPDATE SKIP LOCKED))
    RETURNING d.queue, d.kind, d.event, d.from_state, d.to_state, d.n
),
added AS (
    INSERT INTO dalsegno.transition_totals AS t (queue, kind, event, from_state, to_state, total)
    SELECT x.queue, x.kind, x.event, x.from_state, x.to_state, sum(x.n) FROM taken AS x
     GROUP BY x.queue, x.kind, x.event, x.from_state, x.to_state ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT ON CONSTRAINT transition_totals_pkey DO UPDATE SET total = t.total + excluded.total
)
SELECT count(*) AS "rolled!" FROM taken
