update dalsegno.campaigns set parameters = '{"agent_mode": "plan"}' where id = '00000000-0000-7000-8000-000000000001';
insert into dalsegno.task_parameters (task_id, parameters)
select id, '{"deep_thinking": true}' from dalsegno.tasks order by id limit 1;
