-- Fails if the constraint is not valid for all rows.
do $$ begin
  if not (select convalidated from pg_constraint where conname = 'wait_cause_known') then
    raise exception 'the constraint wait_cause_known is not validated';
  end if;
end $$;
