-- no-transaction
-- Failed tasks, the newest first: the overview shows them on installations with millions of tasks.
create index concurrently tasks_failed on dalsegno.tasks (ended_at desc) where state = 'failed';
