-- Tasks with a schema, and one with a structured result.
select dalsegno.add_task(id, 'planner', 'Plan.', result_schema => '{"type": "object", "required": ["title"]}')
  from dalsegno.campaigns where status = 'active' order by id limit 1;
select dalsegno.add_task(id, 'planner', 'Plan.', '{}'::uuid[], result_schema => '{"type": "array", "items": {"type": "string"}}')
  from dalsegno.campaigns where status = 'active' order by id limit 1;
update dalsegno.tasks set result_json = '{"title": "One"}' where id = (select id from dalsegno.tasks where state = 'done' order by id limit 1);
