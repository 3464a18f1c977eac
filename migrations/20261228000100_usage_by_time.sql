-- no-transaction
-- The costs of a day are added up without reading the ledger of all days. Calls are written in the order of their time, and a block range
-- index costs their writes next to nothing.
create index concurrently if not exists usage_by_time on dalsegno.usage using brin (called_at) with (pages_per_range = 16, autosummarize = on);
