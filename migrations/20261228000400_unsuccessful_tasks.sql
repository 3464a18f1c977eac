-- no-transaction
-- Lists of failed and of cancelled tasks, the newest first, without reading the others. Only tasks that end so are written here.
create index concurrently if not exists tasks_unsuccessful on dalsegno.tasks (state, id desc) where state in ('failed', 'cancelled');
