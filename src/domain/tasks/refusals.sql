-- The refusals of budgets among the newest failed tasks. $1 since · $2 tasks that are read at most
-- One row at least, with the number of tasks that were read. It leaves out the same tasks as failures.sql.
with near as materialized (
    select id, campaign_id, flow_id, step_place, budget_refusal
      from dalsegno.tasks where state = 'failed' and ended_at >= $1 order by ended_at desc limit $2
), totals as materialized (
    select count(*) as n_read from near
)
select totals.n_read as "n_read!", t.budget_refusal as "refusal?: Json<Refusal>"
  from totals left join near as t
    on t.budget_refusal is not null and not dalsegno.is_erased(t.campaign_id)
   and (t.flow_id is null
        or not exists (select from dalsegno.tasks as later
                        where later.flow_id = t.flow_id and later.step_place = t.step_place and later.id > t.id))
