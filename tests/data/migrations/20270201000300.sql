-- Fails if the constraint is not valid for all rows.
do $$ begin
  if not (select convalidated from pg_constraint where conname = 'tasks_budget_refusal_of_failed') then
    raise exception 'the constraint tasks_budget_refusal_of_failed is not validated';
  end if;
end $$;
