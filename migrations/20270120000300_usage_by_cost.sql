-- no-transaction
-- The most expensive calls of a period, without a sort of all its calls.
--
-- Adds: usage_by_cost.
create index concurrently if not exists usage_by_cost on dalsegno.usage (cost_micros desc, id desc);
