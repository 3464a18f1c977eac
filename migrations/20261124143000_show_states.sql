-- The states that sessions and agents have had, in order. Told by the rows that turns, sessions and pauses leave anyway: a turn writes
-- nothing more for it.
create view dalsegno.session_states as
  select s.campaign_id, s.agent_type as agent, s.instance, s.id as session_id, e.turn, e.at, e.place, e.state, e.because
    from dalsegno.sessions as s
   cross join lateral (
     select null::integer as turn, s.created_at as at, 0::bigint as place, 'idle' as state, s.opened_because as because
      union all
     select t.number, t.started_at, t.number::bigint * 2, 'running', null from dalsegno.turns as t where t.session_id = s.id
      union all
     select t.number, t.ended_at, t.number::bigint * 2 + 1,
            case t.state when 'done' then 'idle' when 'failed' then 'error' else 'interrupted' end, t.error
       from dalsegno.turns as t where t.session_id = s.id and t.ended_at is not null
      union all
     select null, s.closed_at, 9223372036854775807, 'closed', s.closed_because where s.closed_at is not null) as e;
comment on view dalsegno.session_states is
  'Each state that a session has had, from when on and why; place is their order within the session. A turn that failed after it had '
  'used tools reads error here, while the row of the session says interrupted, because the next turn is told so.';

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
  'What each agent of a campaign did from when on: working, idle, error, interrupted by its turns, by instance; paused and resumed for all '
  'its instances, in all campaigns where campaign_id is NULL. What it does now: dalsegno.agent_statuses().';
