-- Reads the posts that a turn shows: the newest ones between two places that the agent may see, newest first, and the reasons why
-- others are not shown. One row without a post if there are none.
-- $1 uuid campaign · $2 text reader, NULL for a reader who sees all · $3 uuid session · $4 text agent · $5 text instance
-- $6 bigint after this place · $7 bigint before this place · $8 bigint posts at most · $9 boolean true if the session has no answer yet
-- $10 bigint bytes per text at most · $11 bigint older posts to count at most · $12 uuid the task of the turn
-- $13 bigint bytes of all texts at most · $14 bigint the cursor of the session: older posts are counted down to it
--
-- Until its first answer, a session can contain posts that it took over from its predecessor; afterwards the cursor covers them. An
-- answer that it took over may be posted later. The successor of an expired session has a summary of the conversation instead of its
-- messages. Archived posts are not read.
with seen as materialized (
    select s.seq from dalsegno.boards as b
     cross join lateral dalsegno.visible_posts($1, $2, greatest($6, b.archived_seq), $7, $8) as s (seq)
     where b.campaign_id = $1
), held as materialized (
    select unnest(m.posts) as seq from dalsegno.messages as m where $9 and m.session_id = $3 and m.posts is not null
), summarised as materialized (
    select s.created_at as until from dalsegno.sessions as s
     where s.id = $3 and s.opened_because = 'expired'
       and exists (select from dalsegno.compactions as c where c.session_id = s.id and c.generation = 1 and c.cause = 'inherited')
), judged as materialized (
    select p.id, p.seq, p.sender, p.origin, p.author, p.audience, p.reply_to, p.posted_at, p.task_id, p.session_id, p.turn, p.text,
           case
             when p.session_id = $3
               or p.message_id in (select m.id from dalsegno.messages as m where m.session_id = $3)
               or (p.posted_at < (select s.until from summarised as s)
                   and exists (select from dalsegno.tasks as t where t.id = p.task_id and t.agent = $4 and t.instance = $5)) then 'own'
             when exists (select from dalsegno.tasks as t
                           where t.post_id = p.id and t.agent = $4 and t.instance = $5
                             and (t.id = $12 or (t.ended_at is null and t.session_mode <> 'none')
                                  or t.ended_at < (select s.until from summarised as s)
                                  or exists (select from dalsegno.messages as m
                                              where m.session_id = $3 and m.id = t.id and m.role = 'user'))) then 'task'
             when p.seq in (select h.seq from held as h) then 'shown'
             when octet_length(p.text) > $10::bigint then 'long'
           end as why
      from seen as s join dalsegno.posts as p on p.campaign_id = $1 and p.seq = s.seq
), weighed as (
    select j.*, sum(octet_length(j.text)) filter (where j.why is null) over (order by j.seq desc) > $13::bigint as is_too_much from judged as j
), older as materialized (
    -- Once, and not for each row of the result.
    select count(s.seq) as n
      from dalsegno.boards as b
     cross join lateral dalsegno.visible_posts($1, $2, greatest($14, b.archived_seq), coalesce((select min(s.seq) from seen as s), 0), $11) as s (seq)
     where b.campaign_id = $1
)
select b.last_seq, b.archived_seq, (select o.n from older as o) as "n_older!",
       w.id as "id?", w.seq as "seq?", w.sender as "sender?", w.origin as "origin?: Origin",
       dalsegno.trust_of_post(w.origin, w.author) as "trust?: Trust", w.author, w.audience as "audience?", w.reply_to,
       w.posted_at as "posted_at?", w.task_id, w.session_id, w.turn,
       case when w.why is null and w.is_too_much then 'full' else w.why end as "why: OmissionReason",
       case when w.why is null and not w.is_too_much then w.text end as text
  from dalsegno.boards as b left join weighed as w on true
 where b.campaign_id = $1
 order by w.seq desc
