-- Every campaign has its row in campaign_budgets, whoever made it: turns read it, reserve in it and settle it.
--
-- At the end of the transaction: whoever opens the budget with limits of its own, an older binary too, comes first.
create function dalsegno.open_budget() returns trigger language plpgsql as $body$
begin
  insert into dalsegno.campaign_budgets (campaign_id)
  select c.id from dalsegno.campaigns as c where c.id = new.id
  on conflict on constraint campaign_budgets_pkey do nothing;
  return null;
end
$body$;
comment on function dalsegno.open_budget() is 'Gives a campaign a budget without limits, unless it has one.';
create constraint trigger campaigns_have_a_budget after insert on dalsegno.campaigns
  deferrable initially deferred for each row execute function dalsegno.open_budget();

insert into dalsegno.campaign_budgets (campaign_id) select id from dalsegno.campaigns
on conflict on constraint campaign_budgets_pkey do nothing;
