-- Lists boards with posts that are too old or too many, in the order of their campaigns.
-- $1 uuid after this campaign · $2 bigint boards at most · $3 bigint posts to keep, 0 for no limit · $4 timestamptz posts before this
-- time are old, NULL for no limit
--
-- Posts are archived in the order of their places: an old post behind a new one stays.
select b.campaign_id, b.archived_seq, due.seq as "due_seq!"
  from dalsegno.boards as b
 cross join lateral (
       select greatest(
                case when $3::bigint > 0 then b.last_seq - $3 else 0 end,
                case when $4::timestamptz is not null
                     then coalesce((select p.seq - 1 from dalsegno.posts as p
                                     where p.campaign_id = b.campaign_id and p.seq > b.archived_seq and p.posted_at >= $4
                                     order by p.seq limit 1), b.last_seq)
                     else 0 end) as seq) as due
 where b.campaign_id > $1 and due.seq > b.archived_seq and not dalsegno.is_erased(b.campaign_id)
 order by b.campaign_id limit $2
