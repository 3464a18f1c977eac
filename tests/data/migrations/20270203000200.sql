-- Fails if a comment is missing.
do $$ begin
  if col_description('dalsegno.erased_sessions'::regclass, 2) is null then
    raise exception 'the id of an erased session has no comment';
  end if;
end $$;
