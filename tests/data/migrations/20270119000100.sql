-- The function of other systems has its contract as comment, and no row changed.
do $$
begin
  if (select count(*) from pg_proc as p where p.pronamespace = 'dalsegno'::regnamespace and p.proname = 'add_task' and obj_description(p.oid, 'pg_proc') like '%DS404%') <> 2 then
    raise exception 'the comments of add_task are missing';
  end if;
end $$;
