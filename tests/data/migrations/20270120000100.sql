-- The statuses of the sample campaign.
select agent, instance, state, later, later_at from dalsegno.agent_statuses((select id from dalsegno.campaigns order by id limit 1), now());
