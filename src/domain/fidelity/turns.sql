-- $1 campaign · $2, $3 session and turn behind which the page begins, or NULL · $4 limit · $5 the only proof to list, or NULL
-- $6 turns that are read
select t.session_id as "session_id!", t.number as "turn!", t.agent_type as "agent!", t.instance as "instance!", t.provider as "provider!",
       t.model as "model!", t.state as "state!: State", t.ended_at as "ended_at!", t.history_check as "history_check?: HistoryCheck",
       m.estimated_tokens as "estimated_tokens?", m.real_tokens as "counted_tokens?", t.flags as "flags!"
  from (select s.id as session_id, t.number, s.agent_type, s.instance, s.provider, s.model, t.state, t.ended_at, t.history_check, t.flags
          from (select id, agent_type, instance, provider, model from dalsegno.sessions
                 where campaign_id = $1 and id <= coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) order by id desc) as s
         cross join lateral (select number, state, ended_at, history_check, flags from dalsegno.turns
                              where session_id = s.id and ended_at is not null and ($2::uuid is null or (session_id, number) < ($2, $3::integer))
                              order by number desc) as t
         order by s.id desc, t.number desc limit $6) as t
  left join dalsegno.manifests as m on m.session_id = t.session_id and m.turn = t.number and m.call = 0
 where $5::text is null or t.history_check = $5
 order by t.session_id desc, t.number desc
 limit $4
