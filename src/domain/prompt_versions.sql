-- Lists the versions of the prompt of an agent, the last used first.
-- $1 the agent · $2 the hashes of sessions that open now · $3 rows at most
--
-- The numbers of the turns of a session go on from the session before it. A session may have no stored context, for example because all
-- of its turns were postponed: the newest one of a version can belong to an earlier session.
select prompt_hash as "prompt_hash!", prompt_hash = any ($2) as "is_current!", min(s.created_at) as "first_used_at!",
       max(used_at) as "last_used_at!", count(*) as "sessions!",
       sum(coalesce(turn_count + 1 - (select t.number from dalsegno.turns as t where t.session_id = s.id order by t.number limit 1), 0))::bigint as "turns!",
       (array_agg(s.id order by used_at desc, s.id desc))[1] as "last_session_id!",
       (array_agg(turn_count order by used_at desc, s.id desc))[1] as "last_session_turns!",
       (array_agg(s.id order by stored.created_at desc, s.id desc) filter (where stored.turn is not null))[1] as "stored_session_id?",
       (array_agg(stored.turn order by stored.created_at desc, s.id desc) filter (where stored.turn is not null))[1] as "stored_turn?"
  from dalsegno.sessions as s
  left join lateral (
    select m.turn, m.created_at from dalsegno.manifests as m where m.session_id = s.id order by m.turn desc limit 1
  ) as stored on true
 where s.agent_type = $1
 group by prompt_hash order by max(used_at) desc, prompt_hash limit $3
