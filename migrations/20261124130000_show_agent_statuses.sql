-- What each agent of a campaign does, told by rows alone: a process that has died leaves nothing wrong behind.
--
-- An older binary writes the same rows, and so has nothing to know of this.

-- By the end and not by the state, as tasks_live: beginning a turn does not touch it.
create index tasks_live_by_campaign on dalsegno.tasks (campaign_id) where ended_at is null;
comment on index dalsegno.tasks_live_by_campaign is 'What a campaign''s agents still have to do.';

create function dalsegno.agent_statuses(of_campaign uuid, at timestamptz)
  returns table (agent text, instance text, state text, task_id uuid, session_id uuid, waiting bigint, until timestamptz)
  language sql stable parallel safe as $body$
  with work as (
    -- Nobody waits for what is to begin later.
    select t.agent, t.instance,
           (array_agg(t.id) filter (where j.state = 'running'))[1] as task_id,
           count(*) filter (where j.state is distinct from 'running') as waiting,
           max(j.run_at) filter (where j.wait_reason = 'snooze') as until
      from dalsegno.tasks as t
      left join dalsegno.jobs as j on j.id = t.job_id
     where t.campaign_id = of_campaign and t.ended_at is null and j.wait_reason is distinct from 'later'
     group by t.agent, t.instance
  ), talk as (
    select s.agent_type::text as agent, s.instance, s.id, s.state, r.until
      from dalsegno.sessions as s
      left join dalsegno.resting_logins as r on r.provider = s.provider and r.login = s.login and r.until > at
     where s.campaign_id = of_campaign and s.closed_at is null and not s.ephemeral
  )
  select agent, instance,
         case when w.task_id is not null then 'working'
              when coalesce(t.until, w.until) is not null then 'limited'
              when w.waiting > 0 then 'waiting'
              when t.state = 'error' then 'error'
              else 'idle' end,
         w.task_id, t.id, coalesce(w.waiting, 0), greatest(t.until, w.until)
    from work as w full join talk as t using (agent, instance)
   order by agent, instance
$body$;
comment on function dalsegno.agent_statuses(uuid, timestamptz) is
  'Each agent of a campaign that has a conversation or something to do, by instance. working: a job of it runs; limited: its login '
  'rests, or its next task was put off because a limit is used up; waiting: it has tasks and none runs; error: its last turn '
  'failed and nothing is left to do; idle: none of these. An agent without a row is idle.';
