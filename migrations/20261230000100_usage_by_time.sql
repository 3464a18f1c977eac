-- no-transaction
-- Cost reports of a period. The ledger is appended to in the order of time, so a BRIN index of a few pages finds the rows of a period. A
-- call is written to no further B-tree.
--
-- Adds: usage_by_time.
create index concurrently if not exists usage_by_time on dalsegno.usage using brin (called_at) with (pages_per_range = 16, autosummarize = on);
