-- The tool that a task's running turn is calling, for statuses of agents. The feed has it: a row is written when a tool begins, and
-- another one when it has ended. So a crash leaves no tool behind that seems to run.

create function dalsegno.running_tool(of_task uuid) returns table (tool text, since timestamptz) language sql stable as $body$
  select p.data ->> 'tool', p.created_at
    from (select f.data, f.created_at from dalsegno.feed as f
           where f.task_id = of_task and f.kind = 'turn.progress' order by f.id desc limit 1) as p
   where p.data ->> 'tool' is not null
     and exists (select from dalsegno.turns as t
                  where t.task_id = of_task and t.state = 'running' and t.number::text = p.data ->> 'turn')
$body$;
comment on function dalsegno.running_tool(uuid) is
  'The tool that the running turn of a task is calling, as its latest progress says, and since when; no row if it calls none.';
