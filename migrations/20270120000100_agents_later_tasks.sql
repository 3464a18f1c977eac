-- Counts the tasks of an agent that are scheduled for later, which no status showed.
--
-- Other columns come back, so the function is made anew.
drop function dalsegno.agent_statuses(uuid, timestamptz);
create function dalsegno.agent_statuses(of_campaign uuid, at timestamptz)
  returns table (agent text, instance text, state text, task_id uuid, session_id uuid, waiting bigint, until timestamptz, later bigint, later_at timestamptz)
  language sql stable parallel safe as $body$
  with work as (
    -- Tasks whose time has not come do not count as waiting.
    select t.agent, t.instance,
           (array_agg(t.id) filter (where j.state = 'running'))[1] as task_id,
           count(*) filter (where j.state is distinct from 'running' and j.wait_reason is distinct from 'later') as waiting,
           -- A task whose message batch runs waits for its answer, not for a limit.
           max(j.run_at) filter (where j.wait_reason = 'snooze'
                                   and not exists (select from dalsegno.batches as b where b.task_id = t.id)) as until,
           count(*) filter (where j.wait_reason = 'later') as later,
           min(j.run_at) filter (where j.wait_reason = 'later') as later_at
      from dalsegno.tasks as t
      left join dalsegno.job_states as j on j.id = t.job_id
     where t.campaign_id = of_campaign and t.ended_at is null
     group by t.agent, t.instance
  ), talk as (
    -- A task that was cancelled after its turn had failed is not an error of its agent any more.
    select s.agent_type::text as agent, s.instance, s.id, r.until,
           s.state = 'error' and (select k.state from dalsegno.turns as u join dalsegno.tasks as k on k.id = u.task_id
                                   where u.session_id = s.id order by u.number desc limit 1) is distinct from 'cancelled' as has_failed
      from dalsegno.sessions as s
      left join dalsegno.paused_credentials as r on r.provider = s.provider and r.credential = s.credential and r.until > at
     where s.campaign_id = of_campaign and s.closed_at is null and not s.ephemeral
  ), failed as (
    select distinct on (t.agent, t.instance) t.agent, t.instance, t.ended_at
      from dalsegno.tasks as t where t.campaign_id = of_campaign and t.state = 'failed'
     order by t.agent, t.instance, t.ended_at desc
  ), refused as (
    -- A turn that began since then clears the error. A turn that failed is shown by its session, whose last use is the end of that turn;
    -- a session for one task only is closed with it, and shows nothing.
    select f.agent, f.instance from failed as f
     where not exists (select from dalsegno.sessions as s
                        where s.campaign_id = of_campaign and s.agent_type = f.agent and s.instance = f.instance
                          and (s.used_at > f.ended_at or (s.used_at = f.ended_at and not s.ephemeral)))
  )
  select agent, instance,
         case when w.task_id is not null then 'working'
              when coalesce(t.until, w.until) is not null then 'limited'
              when w.waiting > 0 then 'waiting'
              when t.has_failed or f.agent is not null then 'error'
              else 'idle' end,
         w.task_id, t.id, coalesce(w.waiting, 0), greatest(t.until, w.until),
         coalesce(w.later, 0), w.later_at
    from work as w full join talk as t using (agent, instance) full join refused as f using (agent, instance)
   order by agent, instance
$body$;
comment on function dalsegno.agent_statuses(uuid, timestamptz) is
$comment$The current state of each agent of a campaign that has a conversation or open tasks, by instance. Agents without a row are idle.

of_campaign      the campaign
at               the time at which pauses of credentials are compared, usually now()

state is working (a job of the agent runs), limited (its credential is paused, or a rate limit has put off its next task), waiting (it has
open tasks, and none runs), error (its last task has failed, and none is open) or idle. task_id is the running task, waiting the number of
open tasks that do not run, until the time at which the next one may run again. later counts the tasks whose time has not come, and later_at is
the time of the first of them.$comment$;
