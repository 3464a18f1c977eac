-- Agents in campaigns: pauses, states over time, and the current status, all read from rows. A process that died leaves nothing
-- wrong behind.
--
-- The worker holds the job of a paused agent's task when its turn would begin.

create table dalsegno.agent_pauses (
  id uuid not null constraint agent_pauses_pkey primary key,
  campaign_id uuid constraint agent_pauses_campaign references dalsegno.campaigns (id),
  agent text not null,
  reason text not null constraint agent_pauses_reason_length check (octet_length(reason) between 1 and 500),
  paused_at timestamptz not null,
  paused_by text not null,
  resumed_at timestamptz,
  resumed_by text,
  constraint agent_pauses_end_complete check ((resumed_at is null) = (resumed_by is null))
);
comment on table dalsegno.agent_pauses is
  'Pauses of agents, past ones included. An agent with an open pause begins no turn in its scope.';
comment on column dalsegno.agent_pauses.id is 'In order of time.';
comment on column dalsegno.agent_pauses.campaign_id is 'Where it holds; NULL: in all campaigns.';
comment on column dalsegno.agent_pauses.agent is 'The agent, with all its instances.';
comment on column dalsegno.agent_pauses.reason is 'The reason, for people who find the agent paused.';
comment on column dalsegno.agent_pauses.paused_at is 'Since when.';
comment on column dalsegno.agent_pauses.paused_by is 'Its author, written as in the audit log.';
comment on column dalsegno.agent_pauses.resumed_at is 'Until when; NULL: it is paused.';
comment on column dalsegno.agent_pauses.resumed_by is 'The author of the end, written as in the audit log.';

create unique index agent_pauses_open on dalsegno.agent_pauses (agent, coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'))
  where resumed_at is null;
comment on index dalsegno.agent_pauses_open is 'One open pause for each agent and place; each turn reads it before it begins.';
create index agent_pauses_by_campaign on dalsegno.agent_pauses (campaign_id) where campaign_id is not null;
comment on index dalsegno.agent_pauses_by_campaign is 'The history of a campaign, and its erasure.';

create view dalsegno.agent_states as
  select s.campaign_id, s.agent_type as agent, s.instance, s.id as session_id, t.task_id, t.started_at as at, 'working' as state,
         null as because
    from dalsegno.sessions as s join dalsegno.turns as t on t.session_id = s.id
   union all
  select s.campaign_id, s.agent_type, s.instance, s.id, t.task_id, t.ended_at,
         case t.state when 'done' then 'idle' when 'failed' then 'error' else 'interrupted' end, t.error
    from dalsegno.sessions as s join dalsegno.turns as t on t.session_id = s.id where t.ended_at is not null
   union all
  select p.campaign_id, p.agent, null, null, null, p.paused_at, 'paused', p.reason from dalsegno.agent_pauses as p
   union all
  select p.campaign_id, p.agent, null, null, null, p.resumed_at, 'resumed', p.resumed_by from dalsegno.agent_pauses as p
   where p.resumed_at is not null;
comment on view dalsegno.agent_states is
  'The states of each agent of a campaign over time: working, idle, error, interrupted by its turns, by instance; paused and resumed '
  'for all its instances, in all campaigns where campaign_id is NULL. The current state: dalsegno.agent_statuses().';

create function dalsegno.agent_statuses(of_campaign uuid, at timestamptz)
  returns table (agent text, instance text, state text, task_id uuid, session_id uuid, waiting bigint, until timestamptz)
  language sql stable parallel safe as $body$
  with work as (
    -- Tasks with a later run_at do not count as waiting.
    select t.agent, t.instance,
           (array_agg(t.id) filter (where j.state = 'running'))[1] as task_id,
           count(*) filter (where j.state is distinct from 'running') as waiting,
           max(j.run_at) filter (where j.wait_reason = 'snooze') as until
      from dalsegno.tasks as t
      left join dalsegno.job_states as j on j.id = t.job_id
     where t.campaign_id = of_campaign and t.ended_at is null and j.wait_reason is distinct from 'later'
     group by t.agent, t.instance
  ), talk as (
    select s.agent_type::text as agent, s.instance, s.id, s.state, r.until
      from dalsegno.sessions as s
      left join dalsegno.resting_logins as r on r.provider = s.provider and r.login = s.login and r.until > at
     where s.campaign_id = of_campaign and s.closed_at is null and not s.ephemeral
  ), failed as (
    select distinct on (t.agent, t.instance) t.agent, t.instance, t.ended_at
      from dalsegno.tasks as t where t.campaign_id = of_campaign and t.state = 'failed'
     order by t.agent, t.instance, t.ended_at desc
  ), refused as (
    -- A turn that began since then clears the error. A turn that failed is shown by its session, whose last use is the end of that turn.
    select f.agent, f.instance from failed as f
     where not exists (select from dalsegno.sessions as s
                        where s.campaign_id = of_campaign and s.agent_type = f.agent and s.instance = f.instance
                          and s.used_at >= f.ended_at)
  )
  select agent, instance,
         case when w.task_id is not null then 'working'
              when coalesce(t.until, w.until) is not null then 'limited'
              when w.waiting > 0 then 'waiting'
              when t.state = 'error' or f.agent is not null then 'error'
              else 'idle' end,
         w.task_id, t.id, coalesce(w.waiting, 0), greatest(t.until, w.until)
    from work as w full join talk as t using (agent, instance) full join refused as f using (agent, instance)
   order by agent, instance
$body$;
comment on function dalsegno.agent_statuses(uuid, timestamptz) is
  'Each agent of a campaign that has a conversation or something to do, by instance. working: a job of it runs; limited: its login '
  'rests, or its next task was put off because a limit is used up; waiting: it has tasks and none runs; error: its last task failed, in '
  'a turn or before one could begin, and nothing is left to do; idle: none of these. An agent without a row is idle.';
