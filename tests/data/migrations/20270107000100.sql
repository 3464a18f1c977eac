-- Fails unless each ended task of the earlier version awaits its words.
do $$ begin
  if exists (select from dalsegno.tasks as t where t.ended_at is not null
              and not exists (select from dalsegno.search_backlog as b where b.task_id = t.id)) then
    raise exception 'an ended task is not in the backlog of the search';
  end if;
end $$;
