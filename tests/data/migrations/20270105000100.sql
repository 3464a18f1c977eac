-- Fails unless the function of the statuses answers for each campaign.
select count(*) from dalsegno.campaigns as c cross join lateral dalsegno.agent_statuses(c.id, now()) as s;
