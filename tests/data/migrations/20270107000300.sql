-- Fails if the overview counts the failed deliveries without an index.
do $$ begin
  if to_regclass('dalsegno.webhook_deliveries_failed') is null then
    raise exception 'the index webhook_deliveries_failed does not exist';
  end if;
end $$;
