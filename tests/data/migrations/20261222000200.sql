do $$
begin
  if to_regclass('dalsegno.usage_by_campaign') is not null or to_regclass('dalsegno.usage_by_session') is null then
    raise exception 'the ledger has the wrong indexes';
  end if;
end
$$;
