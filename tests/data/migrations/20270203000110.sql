-- Fails if the index without an order still exists.
do $$ begin
  if to_regclass('dalsegno.jobs_future_in_lane') is not null then
    raise exception 'the index jobs_future_in_lane exists';
  end if;
end $$;
