insert into dalsegno.budgets (owner, key, created_at, period, time_zone, limit_micros, soft_micros) values ('day', '', now(), current_date, 'Europe/Berlin', 2000000, 1600000);
insert into dalsegno.budgets (owner, key, created_at, limit_tokens, on_limit) values ('agent', 'copywriter', now(), 500000, 'fail');
insert into dalsegno.budget_waits (task_id, job_id, since, needed_micros, needed_tokens, owner, key) select id, job_id, now(), 0, 8192, 'day', '' from dalsegno.tasks order by id limit 1;
