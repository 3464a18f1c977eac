-- Ends a turn: session, transcript, ledger, turn, task, budgets, manifest and feed. One statement saves round trips, and no part is
-- useful without the others. The reservation of a task that runs again is settled by the caller, who locks all of its budgets before.
-- $1 the turn (`EndRow`) · lists: $2 messages · $3 the entry of the shown posts · $4 calls · $5 the manifest · $6 events
-- Result: `held` and `task_ended` tell whether this lease ended the turn and the task; the amount to charge; the amount that the turn
-- had reserved; the post that created the task.
--
-- Each part reads rows of the previous one, so locks are taken in the order of `domain`. Amounts are summed over the rows that the
-- ledger inserted, so a call is charged once.
with turn as (
    select * from jsonb_to_record($1) as t (
        session_id uuid, number integer, lease bigint, task_id uuid, campaign_id uuid, now timestamptz,
        state text, error text, flags text[], history_check text, is_prompt_rejected boolean,
        -- Columns of the session. NULL keeps the old value.
        session_state text, n_messages bigint, tokens_used bigint, context_tokens bigint, board_cursor bigint, expires_at timestamptz,
        calibration jsonb, checkpoint jsonb, rebuild_because text,
        -- The point at which a provider that stores the conversation continues, if it changed. NULL: the provider lost the conversation.
        moves_head boolean, head uuid, generation integer, meter jsonb,
        task_state text, task_result text, task_result_json jsonb, task_error text, task_refusal jsonb, task_fault text)
), session as (
    update dalsegno.sessions as s
       set state = turn.session_state, running_turn = null, last_seq = s.last_seq + turn.n_messages, used_at = turn.now,
           token_count = s.token_count + turn.tokens_used, context_tokens = coalesce(turn.context_tokens, s.context_tokens),
           board_cursor = greatest(s.board_cursor, turn.board_cursor), calibration = coalesce(turn.calibration, s.calibration),
           -- A count of another generation of the context would distort estimates.
           checkpoint = case when turn.generation <> s.generation then null else coalesce(turn.checkpoint, s.checkpoint) end,
           -- In steps of an hour: each update adds an entry to every index of the table.
           expires_at = case when turn.expires_at > s.expires_at + interval '1 hour' then turn.expires_at else s.expires_at end,
           rebuild_because = coalesce(s.rebuild_because, turn.rebuild_because), meter = coalesce(turn.meter, s.meter),
           head = case when turn.moves_head then turn.head else s.head end,
           head_seq = case when not turn.moves_head then s.head_seq when turn.head is not null then s.last_seq + turn.n_messages end,
           head_generation = case when turn.moves_head then turn.generation else s.head_generation end,
           -- All attempts of the task in this session, the turn that carried its prompt over from another session, and the turns that
           -- failed since the last answer: the provider may not have accepted them. An answer takes the turns of its task off the list.
           -- Not in CTEs: after a concurrent update Postgres evaluates this expression again, and a CTE would return its rows twice.
           rejected_turns = case
             when turn.is_prompt_rejected
             then array(select unnest(s.rejected_turns)
                        union select t.number from dalsegno.turns as t where t.session_id = s.id and t.task_id = turn.task_id
                        union select m.turn from dalsegno.messages as m where m.session_id = s.id and m.id = turn.task_id and m.role = 'user'
                        union select t.number from dalsegno.turns as t
                               where t.session_id = s.id and t.state = 'failed'
                                 and t.number > coalesce((select max(d.number) from dalsegno.turns as d
                                                           where d.session_id = s.id and d.state = 'done'), 0))
             when turn.state = 'done' and s.rejected_turns <> '{}'
             then array(select unnest(s.rejected_turns)
                        except select t.number from dalsegno.turns as t where t.session_id = s.id and t.task_id = turn.task_id
                        except select m.turn from dalsegno.messages as m where m.session_id = s.id and m.id = turn.task_id and m.role = 'user')
             else s.rejected_turns end
      from turn
     where s.id = turn.session_id and s.running_turn = turn.number and s.lease = turn.lease
    returning s.last_seq - turn.n_messages + 1 as first_seq, s.rejected_turns, s.board_cursor
), new_messages as (
    insert into dalsegno.messages
           (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
    select turn.session_id, session.first_seq + m.place, turn.number, turn.now, m.id, m.role, m.text, m.weight, m.digest, m.partial,
           m.tool_calls, m.tool_call_id, m.tool_name
      from turn, session, jsonb_to_recordset($2) as m (
             place bigint, id uuid, role text, text text, weight bigint, digest bytea, partial boolean, tool_calls jsonb,
             tool_call_id text, tool_name text)
        on conflict (session_id, id) where role = 'user' do nothing
), board_entry as (
    -- At the `seq` that the begin of the turn reserved.
    insert into dalsegno.messages (session_id, seq, turn, created_at, id, role, text, weight, digest, posts)
    select turn.session_id, b.seq, turn.number, turn.now, b.id, 'notice', b.text, b.weight, b.digest, b.posts
      from turn, session, jsonb_to_recordset($3) as b (seq bigint, id uuid, text text, weight bigint, digest bytea, posts bigint[])
), node_entry as (
    -- Instructions of a node that were part of the rejected prompt are sent again.
    update dalsegno.session_nodes as n set entry_id = null
      from turn, session
     where turn.is_prompt_rejected and n.session_id = turn.session_id and n.left_at is null
       and exists (select from dalsegno.messages as m
                    where m.session_id = n.session_id and m.seq >= n.first_seq and m.id = n.entry_id
                      and m.turn = any(session.rejected_turns))
), ledger as (
    insert into dalsegno.usage
           (called_at, campaign_id, task_id, session_id, turn, cost_micros, input_tokens, output_tokens, cache_read_tokens,
            cache_creation_tokens, first_byte_ms, total_ms, purpose, outcome, agent, provider, model, provider_message_id, price)
    select c.called_at, c.campaign_id, c.task_id, c.session_id, c.turn, c.cost_micros, c.input, c.output, c.cache_read,
           c.cache_creation, c.first_byte_ms, c.total_ms, c.purpose, c.outcome, c.agent, c.provider, c.model, c.provider_message_id,
           c.price
      from session, jsonb_to_recordset($4) as c (
             called_at timestamptz, campaign_id uuid, task_id uuid, session_id uuid, turn integer, cost_micros bigint, input bigint,
             output bigint, cache_read bigint, cache_creation bigint, first_byte_ms integer, total_ms integer, purpose text,
             outcome text, agent text, provider text, model text, provider_message_id text, price jsonb)
        on conflict (provider, provider_message_id) where provider_message_id is not null do nothing
    returning cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens
), spent as (
    select count(*)::integer as calls, coalesce(sum(cost_micros), 0)::bigint as micros,
           coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output,
           coalesce(sum(cache_read_tokens), 0)::bigint as cache_read, coalesce(sum(cache_creation_tokens), 0)::bigint as cache_creation
      from ledger
), held_turn as (
    -- Locked and read before the update, because RETURNING would give the zeros. Only the row has all that was reserved: the commit of a
    -- reservation may have succeeded without an answer to the worker, or be in progress still.
    select t.reserved_micros, t.reserved_tokens
      from turn, session, dalsegno.turns as t
     where t.session_id = turn.session_id and t.number = turn.number and t.lease = turn.lease and t.state = 'running'
       for no key update of t
), ended_turn as (
    update dalsegno.turns as t
       set state = turn.state, ended_at = turn.now, error = turn.error, flags = turn.flags, history_check = turn.history_check,
           reserved_micros = 0, reserved_tokens = 0, input_tokens = spent.input, output_tokens = spent.output,
           cache_read_tokens = spent.cache_read, cache_creation_tokens = spent.cache_creation, cost_micros = spent.micros,
           calls = spent.calls, board_cursor = session.board_cursor
      from turn, session, spent, held_turn
     where t.session_id = turn.session_id and t.number = turn.number and t.lease = turn.lease and t.state = 'running'
    returning spent.micros, spent.input + spent.output + spent.cache_read + spent.cache_creation as tokens, t.budgets,
              held_turn.reserved_micros, held_turn.reserved_tokens
), partial_output as (
    delete from dalsegno.partial_outputs as o using turn, ended_turn where o.session_id = turn.session_id and o.turn = turn.number
), task as (
    update dalsegno.tasks as t
       set state = turn.task_state, result = turn.task_result, result_json = turn.task_result_json, error = turn.task_error,
           budget_refusal = turn.task_refusal,
           result_fault = case when turn.task_state = 'queued' then coalesce(turn.task_fault, t.result_fault) end,
           -- Counted from the last fault: a retry begins anew.
           n_corrections = case when turn.task_fault is null then t.n_corrections when t.result_fault is null then 1
                                else t.n_corrections + 1 end,
           ended_at = case when turn.task_state <> 'queued' then turn.now end,
           spent_micros = t.spent_micros + ended_turn.micros, spent_tokens = t.spent_tokens + ended_turn.tokens
      from turn, ended_turn
     where t.id = turn.task_id and t.state in ('queued', 'running')
    returning ended_turn.micros, ended_turn.tokens, t.post_id, t.agent, t.instance
), manifest as (
    insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, real_tokens, sha256, manifest)
    select m.session_id, m.turn, m.call, turn.now, m.estimated_tokens, m.real_tokens, m.sha256, m.manifest
      from turn, task, jsonb_to_recordset($5) as m (
             session_id uuid, turn integer, call smallint, estimated_tokens bigint, real_tokens bigint, sha256 bytea, manifest jsonb)
), events as (
    insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
    select turn.now, e.campaign_id, e.task_id, e.session_id, e.kind, e.data
      from turn, task, jsonb_to_recordset($6) as e (
             place integer, campaign_id uuid, task_id uuid, session_id uuid, kind text, data jsonb)
     order by e.place
), spending as (
    -- If no amount was reserved: instead of the row of the campaign's budget.
    insert into dalsegno.campaign_spending as s (campaign_id, shard, spent_micros, spent_tokens)
    select turn.campaign_id, (pg_backend_pid() & 63)::smallint, task.micros, task.tokens
      from turn, ended_turn, task
     where ended_turn.reserved_micros = 0 and ended_turn.reserved_tokens = 0 and (task.micros <> 0 or task.tokens <> 0)
        on conflict (campaign_id, shard) do update
       set spent_micros = s.spent_micros + excluded.spent_micros, spent_tokens = s.spent_tokens + excluded.spent_tokens
)
select ended_turn.micros is not null as "held!", task.micros is not null as "task_ended!", coalesce(task.micros, 0) as "micros!",
       coalesce(task.tokens, 0) as "tokens!", task.post_id as "post_id?", task.agent as "agent?", task.instance as "instance?",
       coalesce(ended_turn.budgets, '{}') as "budgets!", coalesce(ended_turn.reserved_micros, 0) as "reserved_micros!",
       coalesce(ended_turn.reserved_tokens, 0) as "reserved_tokens!",
       case when task.micros is null then null
            when ended_turn.reserved_micros = 0 and ended_turn.reserved_tokens = 0 then
              case when (task.micros <> 0 or task.tokens <> 0) and exists (select from dalsegno.budgets)
                   then dalsegno.charge_budgets(turn.campaign_id, task.agent, turn.task_id, '{}', 0, 0, task.micros, task.tokens, turn.now)
                        is null end
            when turn.task_state <> 'queued' then
              dalsegno.settle_budgets(turn.campaign_id, task.agent, turn.task_id, coalesce(ended_turn.budgets, '{}'),
                ended_turn.reserved_micros, ended_turn.reserved_tokens, task.micros, task.tokens, turn.now) is null
       end as "charged?"
  from turn left join ended_turn on true left join task on true
