-- Counts the open tasks that wait for budgets, by kind of owner. Rows of tasks that were cancelled meanwhile stay until the next look for space.
select w.owner, count(*) as "n!"
  from dalsegno.budget_waits as w join dalsegno.tasks as t on t.id = w.task_id
 where t.ended_at is null
 group by w.owner
