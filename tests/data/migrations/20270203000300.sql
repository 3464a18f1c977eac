-- Fails if an erasure looks through all deliveries for the warnings about a campaign.
do $$ begin
  if to_regclass('dalsegno.webhook_deliveries_without_task') is null then
    raise exception 'the index webhook_deliveries_without_task does not exist';
  end if;
end $$;
