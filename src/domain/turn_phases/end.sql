-- Ends a turn: session, transcript, ledger, turn, task, what the campaign has spent, manifest and feed. One statement, because
-- each costs a round trip, and nothing of it is of use without the rest.
-- $1 uuid session · $2 integer the turn · $3 bigint lease · $4 timestamptz now
-- $5 text the session's state · $6 bigint how many messages · $7 bigint tokens used · $8 bigint context tokens
-- $9 boolean whether the provider's own place moves · $10 bigint board cursor · $11 jsonb calibration · $12 jsonb checkpoint · $13 timestamptz expiry
-- $14 text why to rebuild
-- $15 to $23 messages · $24 jsonb calls · $25 text the turn's state · $26 text its error · $27 text[] its flags
-- $28 uuid task · $29 text its state · $30 text its result · $31 text its error
-- $32 uuid campaign · $33 boolean whether it is charged here, and not in the budget's own row
-- $34 jsonb manifest, NULL for none · $35 smallint its call · $36 bytea its digest · $37, $38 bigint tokens: estimated, real
-- $39 to $43 events · $44 uuid that place, NULL if it is lost · $45 jsonb meter · $46 integer the view that the place is of
-- $47 bigint[] the posts that were shown, NULL for none · $48 bigint the place that was kept for them · $49 uuid, $50 text, $51 bigint,
-- $52 bytea their entry: id, text, weight, digest · $53 boolean whether the provider has rejected the prompt
-- Result: whether the session, the turn and the task were this lease's to end, what has to be charged, and the post that the task
-- came from.
--
-- Each part takes rows from the one before, so that locks come in the order of `domain`. What may be charged twice is
-- what the ledger took.
with left_it as (
    update dalsegno.sessions
       set state = $5, running_turn = null, last_seq = last_seq + $6, token_count = token_count + $7,
           context_tokens = coalesce($8, context_tokens), board_cursor = greatest(board_cursor, $10), calibration = coalesce($11, calibration),
           -- The count of another view than the one that is shown now would anchor estimates at the wrong place.
           checkpoint = case when $46::integer <> generation then null else coalesce($12, checkpoint) end, used_at = $4, rebuild_because = coalesce(rebuild_because, $14),
           -- In steps of an hour: each move costs an entry in every index of the table.
           expires_at = case when $13 > expires_at + interval '1 hour' then $13 else expires_at end,
           meter = coalesce($45, meter), head = case when $9 then $44 else head end,
           head_seq = case when $9 then case when $44::uuid is not null then last_seq + $6 end else head_seq end,
           head_generation = case when $9 then $46 else head_generation end,
           -- All attempts of the task in this session, the one in which its prompt came over from another, and what has failed since the
           -- last answer: the provider may never have accepted that. An answer takes the task's own back.
           rejected_turns = case
             when $53 then array(select unnest(rejected_turns)
                           union select t.number from dalsegno.turns as t where t.session_id = $1 and t.task_id = $28
                           union select m.turn from dalsegno.messages as m where m.session_id = $1 and m.id = $28 and m.role = 'user'
                           union select t.number from dalsegno.turns as t
                                  where t.session_id = $1 and t.state = 'failed'
                                    and t.number > coalesce((select max(d.number) from dalsegno.turns as d
                                                              where d.session_id = $1 and d.state = 'done'), 0))
             when $25 = 'done' and rejected_turns <> '{}'
             then array(select unnest(rejected_turns)
                        except select t.number from dalsegno.turns as t where t.session_id = $1 and t.task_id = $28
                        except select m.turn from dalsegno.messages as m where m.session_id = $1 and m.id = $28 and m.role = 'user')
             else rejected_turns end
     where id = $1 and running_turn = $2 and lease = $3
    returning last_seq - $6 + 1 as first_seq, rejected_turns
), said as (
    insert into dalsegno.messages
           (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
    select $1, l.first_seq + m.ord - 1, $2, $4, m.id, m.role, m.text, m.weight, m.digest, m.partial, m.tool_calls, m.call_id, m.tool
      from left_it as l,
           unnest($15::uuid[], $16::text[], $17::text[], $18::bigint[], $19::bytea[], $20::boolean[], $21::jsonb[], $22::text[],
                  $23::text[]) with ordinality as m (id, role, text, weight, digest, partial, tool_calls, call_id, tool, ord)
    on conflict (session_id, id) where role = 'user' do nothing
), posted as (
    insert into dalsegno.messages (session_id, seq, turn, created_at, id, role, text, weight, digest, posts)
    select $1, $48, $2, $4, $49, 'notice', $50, $51, $52, $47 from left_it where $47::bigint[] is not null
), unsaid as (
    -- What a node asks for is said again if that went with the prompt.
    update dalsegno.session_nodes as n set entry_id = null
      from left_it as l
     where $53 and n.session_id = $1 and n.left_at is null
       and exists (select from dalsegno.messages as m
                    where m.session_id = $1 and m.seq >= n.first_seq and m.id = n.entry_id and m.turn = any(l.rejected_turns))
), recorded as (
    insert into dalsegno.usage
           (called_at, campaign_id, task_id, session_id, turn, cost_micros, input_tokens, output_tokens, cache_read_tokens,
            cache_creation_tokens, first_byte_ms, total_ms, purpose, outcome, agent, provider, model, provider_message_id, price)
    select c.called_at, c.campaign_id, c.task_id, c.session_id, c.turn, c.cost_micros, c.input, c.output, c.cache_read,
           c.cache_creation, c.first_byte_ms, c.total_ms, c.purpose, c.outcome, c.agent, c.provider, c.model, c.provider_message_id,
           nullif(c.price, 'null')
      from left_it,
           jsonb_to_recordset($24::jsonb) as c (
             called_at timestamptz, campaign_id uuid, task_id uuid, session_id uuid, turn integer, cost_micros bigint, input bigint,
             output bigint, cache_read bigint, cache_creation bigint, first_byte_ms integer, total_ms integer, purpose text,
             outcome text, agent text, provider text, model text, provider_message_id text, price jsonb)
    on conflict (provider, provider_message_id) where provider_message_id is not null do nothing
    returning cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens
), spent as (
    select count(*)::integer as calls, coalesce(sum(cost_micros), 0)::bigint as micros,
           coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output,
           coalesce(sum(cache_read_tokens), 0)::bigint as cache_read, coalesce(sum(cache_creation_tokens), 0)::bigint as cache_creation
      from recorded
), ended as (
    update dalsegno.turns
       set state = $25, ended_at = $4, error = $26, flags = $27, reserved_micros = 0, reserved_tokens = 0, input_tokens = s.input,
           output_tokens = s.output, cache_read_tokens = s.cache_read, cache_creation_tokens = s.cache_creation,
           cost_micros = s.micros, calls = s.calls
      from left_it, spent as s
     where session_id = $1 and number = $2 and lease = $3 and state = 'running'
    returning s.micros, s.input + s.output + s.cache_read + s.cache_creation as tokens
), forgotten as (
    delete from dalsegno.partial_outputs using ended where session_id = $1 and turn = $2
), closed as (
    update dalsegno.tasks as t
       set state = $29, result = $30, error = $31, ended_at = case when $29 <> 'queued' then $4 end,
           spent_micros = t.spent_micros + e.micros, spent_tokens = t.spent_tokens + e.tokens
      from ended as e
     where t.id = $28 and t.state in ('queued', 'running')
    returning e.micros, e.tokens, t.post_id, t.agent, t.instance
), shown as (
    insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, real_tokens, sha256, manifest)
    select $1, $2, $35, $4, $37, $38, $36, $34 from closed where $34::jsonb is not null
), told as (
    insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
    select $4, f.campaign, f.task, f.session, f.kind, f.data
      from closed, unnest($39::uuid[], $40::uuid[], $41::uuid[], $42::text[], $43::jsonb[])
           with ordinality as f (campaign, task, session, kind, data, ord)
     order by f.ord
), charged as (
    insert into dalsegno.campaign_spending as s (campaign_id, shard, spent_micros, spent_tokens)
    select $32, (pg_backend_pid() & 63)::smallint, c.micros, c.tokens from closed as c where $33 and (c.micros <> 0 or c.tokens <> 0)
    on conflict (campaign_id, shard) do update
       set spent_micros = s.spent_micros + excluded.spent_micros, spent_tokens = s.spent_tokens + excluded.spent_tokens
)
select exists (select from ended) as "held!", exists (select from closed) as "task_ended!",
       coalesce((select micros from closed), 0) as "micros!", coalesce((select tokens from closed), 0) as "tokens!",
       (select post_id from closed) as "post_id?", (select agent from closed) as "agent?", (select instance from closed) as "instance?"
