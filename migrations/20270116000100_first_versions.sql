-- A campaign that is written with its versions keeps them as they are. The trigger added version 1 with the current texts where a cleanup had
-- removed the real one, as in an imported campaign.
create or replace function dalsegno.add_first_version() returns trigger language plpgsql as $body$
begin
  insert into dalsegno.campaign_versions (campaign_id, version, changed_at, brief, client_context, parameters)
  select new.id, 1, new.created_at, new.brief, new.client_context, new.parameters
   where not exists (select from dalsegno.campaign_versions as v where v.campaign_id = new.id)
  on conflict on constraint campaign_versions_pkey do nothing;
  return null;
end
$body$;
comment on function dalsegno.add_first_version() is 'Stores the first version of a campaign, unless versions of it are stored already.';
