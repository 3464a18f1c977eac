-- $1 campaign
select c.session_id, c.generation, c.turn, c.created_at, c.outcome <> 'refused' as "was_accepted_later!",
       coalesce(c.rung = 'extract', false) as "is_extract!",
       c.refusals as "attempts: Json<Vec<RefusedAttempt>>"
  from dalsegno.sessions as s
  join dalsegno.compactions as c on c.session_id = s.id
 where s.campaign_id = $1 and c.refusals <> '[]'
 order by c.id desc
 limit 100
