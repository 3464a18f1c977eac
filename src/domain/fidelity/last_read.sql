-- $1 campaign · $2, $3 session and turn behind which the page begins, or NULL · $4 turns before the last one that is read
select s.id as "session_id!", t.number as "turn!"
  from (select id from dalsegno.sessions
         where campaign_id = $1 and id <= coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) order by id desc) as s
 cross join lateral (select number from dalsegno.turns
                      where session_id = s.id and ended_at is not null and ($2::uuid is null or (session_id, number) < ($2, $3::integer))
                      order by number desc) as t
 order by s.id desc, t.number desc offset $4 limit 1
