-- The most expensive call.
select id from dalsegno.usage order by cost_micros desc, id desc limit 1;
