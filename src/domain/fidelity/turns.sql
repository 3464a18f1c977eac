-- $1 campaign · $2, $3 session and turn behind which the page begins, or NULL · $4 limit · $5 the only proof to list, or NULL
select t.session_id, t.number as turn, s.agent_type as agent, s.instance, s.provider, s.model,
       t.state as "state: State", t.ended_at as "ended_at!", t.history_check as "history_check: HistoryCheck",
       m.estimated_tokens as "estimated_tokens?", m.real_tokens as "counted_tokens?", t.flags
  from dalsegno.sessions as s
  join dalsegno.turns as t on t.session_id = s.id
  left join dalsegno.manifests as m on m.session_id = t.session_id and m.turn = t.number and m.call = 0
 where s.campaign_id = $1 and t.ended_at is not null and ($5::text is null or t.history_check = $5)
   and ($2::uuid is null or (t.session_id, t.number) < ($2, $3::integer))
 order by t.session_id desc, t.number desc
 limit $4
