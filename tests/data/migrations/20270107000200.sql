-- Fails if an index of the tasks still computes words.
do $$ begin
  if to_regclass('dalsegno.tasks_texts') is not null then
    raise exception 'the index tasks_texts exists';
  end if;
end $$;
insert into dalsegno.search_words (task_id, words)
select t.id, dalsegno.task_words(t.prompt, t.result, t.created_at) from dalsegno.tasks as t where t.ended_at is not null limit 1;
