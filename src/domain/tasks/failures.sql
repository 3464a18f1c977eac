-- Failed tasks in groups: those of a flow, or of none, that failed with the same error, or at the same budget.
-- $1 since · $2 characters of a prompt · $3 characters of an error · $4 tasks that are read at most, the newest · $5 groups that are listed at most
-- $6 tasks of a group that are listed at most · $7 tasks that are listed at most, one of each group first
with near as materialized (
    select id, campaign_id, flow_id, step_place, ended_at, left(error, $3) as error, budget_refusal
      from dalsegno.tasks where state = 'failed' and ended_at >= $1 order by ended_at desc limit $4
), owner as materialized (
    -- Looked at once, and not for each of their tasks.
    select distinct campaign_id from near
), erased as materialized (
    select campaign_id from owner where dalsegno.is_erased(campaign_id)
), open as materialized (
    select t.id, t.ended_at,
           jsonb_build_array(t.flow_id, t.budget_refusal is null,
             -- Errors at one budget differ in what was spent then. The budget of a task is that of this task alone: steps are equal by their amounts.
             case when t.budget_refusal is null then t.error
                  when t.budget_refusal ->> 'owner' = 'day' then 'day'
                  when t.budget_refusal ->> 'owner' = 'task' and t.flow_id is not null
                    then (t.budget_refusal - '{key,call}'::text[])::text
                  else concat_ws('/', t.budget_refusal ->> 'owner', t.budget_refusal ->> 'key')
             end)::text collate "C" as matter
      from near as t
     where t.campaign_id not in (select campaign_id from erased)
       and (t.flow_id is null
            or not exists (select from dalsegno.tasks as later
                            where later.flow_id = t.flow_id and later.step_place = t.step_place and later.id > t.id))
), grouped as materialized (
    -- Numbered by their newest task.
    select row_number() over (order by max(ended_at) desc, matter) as place, count(*) as n_tasks,
           (array_agg(id order by ended_at desc, id desc))[1:$6::integer] as ids
      from open group by matter
), listed as materialized (
    select g.place, g.n_tasks, i.id
      from (select * from grouped order by place limit $5) as g, unnest(g.ids) with ordinality as i (id, place)
     order by i.place, g.place limit $7
), totals as materialized (
    select (select count(*) from near) as n_read, (select count(*) from grouped) as n_groups
), numbered as materialized (
    -- The oldest one that is listed of a group stands for those that are not.
    select l.id, l.place, row_number() over (partition by l.place order by t.ended_at, l.id) = 1 as is_oldest,
           l.n_tasks - count(*) over (partition by l.place) as n_unlisted
      from listed as l join dalsegno.tasks as t on t.id = l.id
)
select totals.n_read as "n_read!", totals.n_groups as "n_groups!", n.place as "group_place?", case when n.is_oldest then n.n_unlisted end as "n_unlisted?",
       t.id as "id?", t.job_id as "job_id?", t.campaign_id as "campaign_id?", t.agent as "agent?", t.instance as "instance?",
       left(t.prompt, $2) as "prompt?", left(t.error, $3) as "error?", t.budget_refusal as "budget_refusal?: Json<Refusal>",
       t.flow_id as "flow_id?", t.step as "step?", t.session_id as "session_id?", t.turn as "turn?", t.started_at as "started_at?",
       t.ended_at as "ended_at?"
  from totals left join (numbered as n join dalsegno.tasks as t on t.id = n.id) on true
 order by t.ended_at desc, t.id desc
