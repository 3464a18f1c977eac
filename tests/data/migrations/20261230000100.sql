-- The ledger has rows whose times the index covers.
select count(*) from dalsegno.usage where called_at < now();
