insert into dalsegno.busy_models (provider, model, since, refused_at, until, refusals, why)
values ('ollama', 'qwen3:8b', '2026-11-21', '2026-11-21', '2026-11-21', 1, 'it has too many calls waiting');
insert into dalsegno.busy_tasks (task_id, since, until) select id, created_at, created_at from dalsegno.tasks limit 1;
