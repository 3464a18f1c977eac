update dalsegno.tasks set soft_micros = 1000000 where id = (select id from dalsegno.tasks order by id limit 1);
select dalsegno.change_budget('user', 'ann@example.org', 'UTC', '{"tokens": 100000, "soft_tokens": 80000}', now());
