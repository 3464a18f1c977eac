-- Finds the summaries of compactions that were applied, the newest first. $1 question · $2 weeks as tsquery, or NULL · $3 campaign ·
-- $4 campaigns · $5 agent · $6 instance · $7 since · $8, $9 place before which it begins · $10 matches at most · $11 rows at most
--
-- A summary that a later session has inherited is found once, in the session that made it.
with near as materialized (
  select c.id, c.created_at, c.session_id, s.campaign_id,
         case when s.instance = 'main' then s.agent_type else s.agent_type || '/' || s.instance end as author
    from dalsegno.compactions as c join dalsegno.sessions as s on s.id = c.session_id
   where c.outcome = 'applied' and c.cause <> 'inherited'
     and dalsegno.text_words(c.summary, c.created_at)
         @@ case when $2::text is null then dalsegno.text_query($1) else dalsegno.text_query($1) && $2::text::tsquery end
     and ($3::uuid is null or s.campaign_id = $3) and ($4::uuid[] is null or s.campaign_id = any ($4))
     and ($5::text is null or s.agent_type = $5) and ($6::text is null or s.instance = $6)
     and ($7::timestamptz is null or c.created_at >= $7) and (c.created_at, c.session_id) < ($8, $9)
   limit $10),
newest as materialized (select * from near order by created_at desc, session_id desc limit $11)
select n.session_id as id, n.campaign_id as "campaign_id?", n.created_at as at, n.session_id as "session_id?", c.generation::bigint as "seq?",
       n.author as "author!", dalsegno.text_snippet(c.summary, dalsegno.text_query($1)) as "snippet!"
  from newest as n join dalsegno.compactions as c on c.id = n.id
 order by n.created_at desc, n.session_id desc
