do $$
begin
  if (select sum(dalsegno.session_cost(campaign_id, id)) from dalsegno.sessions)
     <> (select sum(cost_micros) from dalsegno.usage where session_id in (select id from dalsegno.sessions)) then
    raise exception 'the costs of sessions differ from the ledger';
  end if;
end
$$;
