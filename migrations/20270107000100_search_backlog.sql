-- Search in ended tasks, without the work of the index in the turn that ends a task: it cost about an eighth of the turns per second.
--
-- The end of a task adds its id to a backlog. A job computes the words of these tasks. Until then a search reads the newest of them itself.
--
-- Race: a text is erased while the job computes its words. The job locks the task first, so the erasure comes before it, and the job reads
-- the erased text; or after it, and the trigger deletes the words.
--
-- Adds: search_words, search_backlog.
create table dalsegno.search_backlog (
  task_id uuid constraint search_backlog_pkey primary key
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.search_backlog is 'Ended tasks whose words are not in search_words yet. A task may be gone.';

create table dalsegno.search_words (
  task_id uuid constraint search_words_pkey primary key
          constraint search_words_task references dalsegno.tasks (id) on delete cascade,
  words tsvector not null
);
comment on table dalsegno.search_words is 'The words of ended tasks, as dalsegno.task_words returns them.';
create index search_words_words on dalsegno.search_words using gin (words);

create function dalsegno.await_search() returns trigger language plpgsql as $body$
begin
  if old.ended_at is not null then
    delete from dalsegno.search_words as w where w.task_id = new.id;
  end if;
  insert into dalsegno.search_backlog (task_id) values (new.id) on conflict on constraint search_backlog_pkey do nothing;
  return null;
end
$body$;
comment on function dalsegno.await_search() is 'Adds a task that has ended, or whose text has changed since, to the backlog of the search.';

create trigger tasks_await_search after update of ended_at, prompt, result on dalsegno.tasks for each row
  when (new.ended_at is not null
        and (old.ended_at is null or old.prompt <> new.prompt or old.result is distinct from new.result))
  execute function dalsegno.await_search();

insert into dalsegno.search_backlog (task_id) select t.id from dalsegno.tasks as t where t.ended_at is not null;
