-- Stores the parts from which the summaries of these sessions are built. Deletes the stored summaries of their conversations that
-- are not worth keeping. The caller holds locks on the sessions.
-- $1 uuid[] sessions, $2 uuid[] sessions that are worth keeping, $3 timestamptz now, $4 text summary of a compaction that has read nothing
with ended as materialized (
  select s.id, s.campaign_id, s.agent_type as agent, s.instance, s.expires_at, s.last_seq, s.board_cursor, s.context_tokens,
         s.turn_count, s.state = 'interrupted' as interrupted, s.generation, s.rejected_turns
    from dalsegno.sessions as s where s.id = any ($1) and s.closed_at is null and not s.ephemeral
), forgotten as (
  delete from dalsegno.session_summaries as k using ended as e
   where k.campaign_id = e.campaign_id and k.agent = e.agent and k.instance = e.instance and not e.id = any ($2)
)
insert into dalsegno.session_summaries as k
       (campaign_id, session_id, expired_at, stored_at, last_seq, board_cursor, context_tokens, turn_count, interrupted, agent, instance,
        rung, model, node, summary, pins, flow, prompts, excerpts)
select e.campaign_id, e.id, e.expires_at, $3, e.last_seq, e.board_cursor, e.context_tokens, e.turn_count, e.interrupted, e.agent, e.instance,
       a.rung, a.model, a.node, a.summary, coalesce(a.pins, '[]'), a.flow, a.prompts, x.excerpts
  from ended as e
  left join lateral (
    -- The newest accepted compaction: a prepared one continues the applied one. In place of a reference the compaction before it, with
    -- excerpts of the messages after that one, unless only the predecessor had these messages.
    with recursive accepted as (
      (select c.* from dalsegno.compactions as c
        where c.session_id = e.id
          and ((c.generation = e.generation and c.outcome = 'applied') or (c.parent = e.generation and c.outcome = 'prepared'))
        order by c.generation desc limit 1)
      union all
      select before.* from accepted as c
        join dalsegno.compactions as before on before.session_id = c.session_id and before.generation = c.parent
       where c.summary = $4 and c.cause <> 'inherited')
    select c.to_seq, c.rung, c.model, c.node, c.summary, c.pins, c.flow, c.prompts from accepted as c
     where c.summary <> $4 or c.cause = 'inherited') as a on true
 cross join lateral (
    select coalesce(jsonb_agg(jsonb_build_object('seq', m.seq, 'role', m.role, 'by', m.tool_name, 'text',
                      case when char_length(m.text) <= m.most_chars then m.text
                           else left(m.text, m.most_chars * 2 / 3) || E'\n' || right(m.text, m.most_chars / 3) end) order by m.seq), '[]') as excerpts
      from (select n.*, case n.role when 'user' then 2000 else 600 end as most_chars
              from ((select m.seq, m.role, m.tool_name, m.text from dalsegno.messages as m
                      where m.session_id = e.id and m.seq > coalesce(a.to_seq, 0) and m.role in ('user', 'assistant') and m.text <> ''
                        and m.turn <> all (e.rejected_turns)
                      order by m.seq desc limit 8)
                    union
                    (select m.seq, m.role, m.tool_name, m.text from dalsegno.messages as m
                      where m.session_id = e.id and m.seq > coalesce(a.to_seq, 0) and m.role = 'user' and m.text <> ''
                        and m.turn <> all (e.rejected_turns)
                      order by m.seq limit 1)) as n) as m) as x
 where e.id = any ($2) and (a.summary is not null or x.excerpts <> '[]')
on conflict (campaign_id, agent, instance) do update
   set session_id = excluded.session_id, expired_at = excluded.expired_at, stored_at = excluded.stored_at, last_seq = excluded.last_seq,
       board_cursor = excluded.board_cursor, context_tokens = excluded.context_tokens, turn_count = excluded.turn_count,
       interrupted = excluded.interrupted, rung = excluded.rung, model = excluded.model, node = excluded.node,
       summary = excluded.summary, pins = excluded.pins, flow = excluded.flow, prompts = excluded.prompts, excerpts = excluded.excerpts
