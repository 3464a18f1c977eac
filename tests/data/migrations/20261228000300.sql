-- Reads through the index.
select sum(cost_micros) from dalsegno.usage where session_id is not null;
