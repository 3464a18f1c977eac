-- Finds results of tools, answers before a tool and interrupted ones, the newest first. $1 question · $2 weeks as tsquery, or NULL · $3 campaign · $4 campaigns · $5 agent ·
-- $6 instance · $7 since · $8, $9 place before which it begins · $10 matches at most · $11 rows at most
--
-- A message that later sessions have inherited is found once, in the latest of them.
with near as materialized (
  select m.session_id, m.seq, m.id, m.created_at, s.campaign_id,
         case when s.instance = 'main' then s.agent_type else s.agent_type || '/' || s.instance end as author
    from dalsegno.messages as m join dalsegno.sessions as s on s.id = m.session_id
   where (m.role = 'tool' or m.tool_calls is not null or m.partial)
     and dalsegno.text_words(m.text, m.created_at)
         @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
     and ($3::uuid is null or s.campaign_id = $3) and ($4::uuid[] is null or s.campaign_id = any ($4))
     and ($5::text is null or s.agent_type = $5) and ($6::text is null or s.instance = $6)
     and ($7::timestamptz is null or m.created_at >= $7) and (m.created_at, m.id) < ($8, $9)
   limit $10),
newest as materialized (
  select distinct on (created_at, id) * from near order by created_at desc, id desc, session_id desc limit $11)
select n.id, n.campaign_id, n.created_at as at, n.session_id as "session_id?", n.seq as "seq?", n.author as "author!",
       dalsegno.text_snippet(m.text, dalsegno.text_query($1)) as "snippet!"
  from newest as n join dalsegno.messages as m on m.session_id = n.session_id and m.seq = n.seq
 order by n.created_at desc, n.id desc
