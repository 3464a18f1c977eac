-- Lists the versions of the prompt of an agent, the last used first.
-- $1 the agent · $2 the hashes of sessions that open now · $3 rows at most
--
-- An agent can have many thousands of sessions, so few of them are looked at one by one: for their first turn those that go on with the
-- numbers of another session, and for a stored context the last used ones of a version, until one has it. A session may have none, for
-- example because all of its turns were postponed.
with versions as materialized (
  select s.prompt_hash, min(s.created_at) as first_used_at, max(s.used_at) as last_used_at, count(*) as sessions,
         sum(case when s.predecessor_id is null and s.forked_from_session is null then s.turn_count
                  else coalesce(s.turn_count + 1 - (select t.number from dalsegno.turns as t where t.session_id = s.id order by t.number limit 1), 0)
             end)::bigint as turns,
         array_agg(s.id order by s.used_at desc, s.id desc) as session_ids,
         (array_agg(s.turn_count order by s.used_at desc, s.id desc))[1] as last_session_turns
    from dalsegno.sessions as s
   where s.agent_type = $1
   group by s.prompt_hash order by max(s.used_at) desc, s.prompt_hash limit $3
)
select v.prompt_hash as "prompt_hash!", v.prompt_hash = any ($2) as "is_current!", v.first_used_at as "first_used_at!",
       v.last_used_at as "last_used_at!", v.sessions as "sessions!", v.turns as "turns!", v.session_ids[1] as "last_session_id!",
       v.last_session_turns as "last_session_turns!", stored.session_id as "stored_session_id?", stored.turn as "stored_turn?"
  from versions as v
  left join lateral (
    select s.id as session_id, m.turn
      from unnest(v.session_ids) with ordinality as s (id, place)
     cross join lateral (select m.turn from dalsegno.manifests as m where m.session_id = s.id order by m.turn desc limit 1) as m
     order by s.place limit 1
  ) as stored on true
 order by v.last_used_at desc, v.prompt_hash
