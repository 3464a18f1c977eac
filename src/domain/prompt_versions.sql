-- Lists the versions of the prompt of an agent, the last used first.
-- $1 the agent · $2 the hashes of sessions that open now · $3 rows at most
--
-- The numbers of the turns of a session go on from the session before it.
select prompt_hash as "prompt_hash!", prompt_hash = any ($2) as "is_current!", min(created_at) as "first_used_at!",
       max(used_at) as "last_used_at!", count(*) as "sessions!",
       sum(coalesce(turn_count + 1 - (select t.number from dalsegno.turns as t where t.session_id = sessions.id order by t.number limit 1), 0))::bigint as "turns!",
       (array_agg(id order by used_at desc, id desc))[1] as "last_session_id!",
       (array_agg(turn_count order by used_at desc, id desc))[1] as "last_session_turns!"
  from dalsegno.sessions where agent_type = $1
 group by prompt_hash order by max(used_at) desc, prompt_hash limit $3
