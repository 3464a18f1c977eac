-- Begins a turn: the session runs, the prompt is in the transcript, the task has started. One statement, because each costs
-- a round trip, and nothing of it is of use without the rest.
-- $1 uuid session · $2 bigint lease · $3 integer the turn · $4 bigint how many messages · $5 timestamptz now
-- $6 uuid task · $7 smallint attempt · $8 bigint job · $9, $10 bigint set aside: money, tokens
-- $11 to $19 messages · $20 to $24 events · $25 text external id, $26 text login: for a provider that keeps the conversation
-- $27 bigint places that are kept free in front of the prompt
-- Result: no row if the session is not this lease's to enter; `started` is false if the task has ended.
--
-- Everything hangs on `entered`, so the session's row is locked before any other.
with entered as (
    update dalsegno.sessions
       set state = 'running', lease = $2, turn_count = turn_count + 1, running_turn = turn_count + 1,
           last_seq = last_seq + $4 + $27, used_at = $5,
           external_session_id = coalesce($25, external_session_id), login = coalesce($26, login)
     where id = $1 and turn_count = $3 - 1 and closed_at is null and running_turn is null and (lease is null or lease <= $2)
    returning last_seq - $4 - $27 + 1 as first_seq
), said as (
    -- A prompt that an earlier attempt has written is left out, and its place stays empty.
    insert into dalsegno.messages
           (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
    select $1, e.first_seq + m.ord - 1 + case when m.role = 'user' then $27 else 0 end, $3, $5, m.id, m.role, m.text, m.weight, m.digest, m.partial, m.tool_calls, m.call_id, m.tool
      from entered as e,
           unnest($11::uuid[], $12::text[], $13::text[], $14::bigint[], $15::bytea[], $16::boolean[], $17::jsonb[], $18::text[],
                  $19::text[]) with ordinality as m (id, role, text, weight, digest, partial, tool_calls, call_id, tool, ord)
    on conflict (session_id, id) where role = 'user' do nothing
), begun as (
    insert into dalsegno.turns (session_id, number, task_id, attempt, job_id, lease, reserved_micros, reserved_tokens, started_at)
    select $1, $3, $6, $7, $8, $2, $9, $10, $5 from entered
), forgotten as (
    -- Written late by a run that is over.
    delete from dalsegno.partial_outputs using entered where session_id = $1
), started as (
    update dalsegno.tasks as t
       set state = 'running', started_at = coalesce(t.started_at, $5), session_id = $1, turn = $3, n_waits = 0
      from entered
     where t.id = $6 and t.state in ('queued', 'running')
    returning t.budget_micros, t.budget_tokens, t.spent_micros, t.spent_tokens
), told as (
    insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
    select $5, f.campaign, f.task, f.session, f.kind, f.data
      from started, unnest($20::uuid[], $21::uuid[], $22::uuid[], $23::text[], $24::jsonb[])
           with ordinality as f (campaign, task, session, kind, data, ord)
     order by f.ord
)
select s.spent_micros is not null as "started!", s.budget_micros as "budget_micros?", s.budget_tokens as "budget_tokens?",
       coalesce(s.spent_micros, 0) as "spent_micros!", coalesce(s.spent_tokens, 0) as "spent_tokens!"
  from entered left join started as s on true
