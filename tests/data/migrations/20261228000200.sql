-- Reads through the index.
select sum(cost_micros) from dalsegno.usage where campaign_id = (select id from dalsegno.campaigns order by id limit 1);
