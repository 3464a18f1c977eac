-- no-transaction
-- Search in prompts and results. Open tasks are not in it, so that adding a task and beginning its turn cost nothing more.
--
-- Adds: tasks_texts.
create index concurrently if not exists tasks_texts on dalsegno.tasks using gin (dalsegno.task_words(prompt, result, created_at))
  where ended_at is not null;
