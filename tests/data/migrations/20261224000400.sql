-- Tasks whose agents may start one flow template, or none.
select dalsegno.add_task(id, 'planner', 'Plan.', flow_templates => '{reviewed-text}') from dalsegno.campaigns where status = 'active' order by id limit 1;
select dalsegno.add_task(id, 'planner', 'Plan.', '{}'::uuid[], flow_templates => '{}') from dalsegno.campaigns where status = 'active' order by id limit 1;
