-- Begins a turn: marks the session as running, appends the prompt to the transcript, starts the task, reserves in the budgets. One
-- statement saves round trips, and no part is useful without the others.
-- $1 the turn (`BeginRow`) · $2 list of messages · $3 list of events
-- Result: no row if this lease may not enter the session; `started` is false if the task has ended; `refusal` of the first budget
-- without space.
--
-- Every part reads `session`, so the session row is locked before any other.
with turn as (
    select * from jsonb_to_record($1) as t (
        session_id uuid, campaign_id uuid, number integer, lease bigint, task_id uuid, attempt smallint, job_id bigint, now timestamptz,
        reserved_micros bigint, reserved_tokens bigint, budgets bigint[], n_places bigint,
        -- Only for providers that store the conversation.
        external_session_id text, credential text,
        -- Only for agents with several models.
        chain jsonb)
), session as (
    update dalsegno.sessions as s
       set state = 'running', lease = turn.lease, turn_count = s.turn_count + 1, running_turn = s.turn_count + 1,
           last_seq = s.last_seq + turn.n_places, used_at = turn.now,
           external_session_id = coalesce(turn.external_session_id, s.external_session_id), credential = coalesce(turn.credential, s.credential)
      from turn
     -- Not `closed_at is null`: without statistics, Postgres would then read the whole index of open sessions.
     where s.id = turn.session_id and s.turn_count = turn.number - 1 and s.state <> 'closed' and s.running_turn is null
       and (s.lease is null or s.lease <= turn.lease)
    returning s.last_seq - turn.n_places + 1 as first_seq
), new_messages as (
    -- A prompt that an earlier attempt wrote is skipped. Its `seq` stays unused.
    insert into dalsegno.messages
           (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
    select turn.session_id, session.first_seq + m.place, turn.number, turn.now, m.id, m.role, m.text, m.weight, m.digest, m.partial,
           m.tool_calls, m.tool_call_id, m.tool_name
      from turn, session, jsonb_to_recordset($2) as m (
             place bigint, id uuid, role text, text text, weight bigint, digest bytea, partial boolean, tool_calls jsonb,
             tool_call_id text, tool_name text)
        on conflict (session_id, id) where role = 'user' do nothing
), new_turn as (
    insert into dalsegno.turns (session_id, number, task_id, attempt, job_id, lease, reserved_micros, reserved_tokens, budgets, started_at, chain)
    select turn.session_id, turn.number, turn.task_id, turn.attempt, turn.job_id, turn.lease, turn.reserved_micros,
           turn.reserved_tokens, turn.budgets, turn.now, turn.chain
      from turn, session
), late_output as (
    -- Rows that an ended run wrote late.
    delete from dalsegno.partial_outputs as o using turn, session where o.session_id = turn.session_id
), budget_wait as (
    -- Of a task that a person has let run before there was space.
    delete from dalsegno.budget_waits as w using turn, session where w.task_id = turn.task_id
), task as (
    update dalsegno.tasks as t
       set state = 'running', started_at = coalesce(t.started_at, turn.now), session_id = turn.session_id, turn = turn.number, n_waits = 0
      from turn, session
     where t.id = turn.task_id and t.state in ('queued', 'running')
    returning t.budget_micros, t.budget_tokens, t.spent_micros, t.spent_tokens
), events as (
    insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
    select turn.now, e.campaign_id, e.task_id, e.session_id, e.kind, e.data
      from turn, task, jsonb_to_recordset($3) as e (
             place integer, campaign_id uuid, task_id uuid, session_id uuid, kind text, data jsonb)
     order by e.place
)
select task.spent_micros is not null as "started!", task.budget_micros as "budget_micros?", task.budget_tokens as "budget_tokens?",
       coalesce(task.spent_micros, 0) as "spent_micros!", coalesce(task.spent_tokens, 0) as "spent_tokens!",
       case when task.spent_micros is not null and greatest(turn.reserved_micros, turn.reserved_tokens) > 0
            then dalsegno.reserve_budgets(turn.campaign_id, turn.budgets, turn.reserved_micros, turn.reserved_tokens, turn.now)
       end as "refusal?"
  from turn, session left join task on true
