-- An archive of one post.
update dalsegno.boards set archived_seq = 1, archived_at = now() where campaign_id = '00000000-0000-7000-8000-000000000001';
insert into dalsegno.board_archives (campaign_id, viewer, sender, n_posts, first_at, last_at)
select p.campaign_id, 'operator', p.sender, 1, p.posted_at, p.posted_at from dalsegno.posts as p
 where p.campaign_id = '00000000-0000-7000-8000-000000000001' and p.seq = 1;
