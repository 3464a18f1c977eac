-- no-transaction
-- The lanes that are held, for the overview and `dalsegno doctor`. They are few, and were looked for among all lanes.
--
-- Adds: lanes_held.
create index concurrently if not exists lanes_held on dalsegno.lanes (key) where hold_reason is not null;
