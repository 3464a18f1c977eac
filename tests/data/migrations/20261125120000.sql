insert into dalsegno.flows (id, campaign_id, created_at, template)
select '00000000-0000-7000-8000-0000000f1010', c.id, now(), 'series' from dalsegno.campaigns as c order by c.id limit 1;
