-- Archives the posts of a board up to a place, and counts them for each of their readers.
-- $1 uuid campaign · $2 bigint the end of the archive so far · $3 bigint its new end · $4 timestamptz now
with counted as (
    insert into dalsegno.board_archives as a (campaign_id, viewer, sender, n_posts, first_at, last_at)
    select $1, r.viewer, p.sender, count(*), min(p.posted_at), max(p.posted_at)
      from dalsegno.posts as p
     cross join lateral (
           select 'operator'::text as viewer
           union
           select n.name from unnest(case when 'all' = any (p.audience) then array['all'] else p.audience || p.sender end) as n (name)
            where n.name not in ('operator', 'system')) as r
     where p.campaign_id = $1 and p.seq > $2 and p.seq <= $3
     group by r.viewer, p.sender
        on conflict on constraint board_archives_pkey do update
       set n_posts = a.n_posts + excluded.n_posts, first_at = least(a.first_at, excluded.first_at),
           last_at = greatest(a.last_at, excluded.last_at)
)
update dalsegno.boards set archived_seq = $3, archived_at = $4 where campaign_id = $1
