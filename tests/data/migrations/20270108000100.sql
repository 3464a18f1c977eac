-- Limits in use, a worker with concurrent calls, and a task that waits.
insert into dalsegno.rate_limits (key, subject, measure, amount, available, refilled_at)
values ('openai * * * requests', 'the provider `openai`', 'requests', 600, -3, now()),
       ('openai gpt-5 * * concurrent_calls', '`gpt-5`', 'concurrent_calls', 4, 2, now());
insert into dalsegno.rate_limit_calls (key, worker, calls, until)
values ('openai gpt-5 * * concurrent_calls', gen_random_uuid(), 2, now());
insert into dalsegno.rate_limit_waits (task_id, job_id, campaign_id, keys, amounts, key, place, since)
select id, job_id, campaign_id, '{"openai * * * requests"}', '{1}', 'openai * * * requests', 0, now() from dalsegno.tasks order by id limit 1;
