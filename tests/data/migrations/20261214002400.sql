select dalsegno.add_post('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000a1', now(), 'operator', 'operator',
                         array['copywriter'], 'Mind the tides.');
select dalsegno.add_post('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000a2', now(), 'agent', 'copywriter',
                         array['all'], 'They are minded.', '00000000-0000-7000-8000-0000000000a1',
                         '00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 1);
update dalsegno.tasks set post_id = '00000000-0000-7000-8000-0000000000a1' where id = '00000000-0000-7000-8000-000000000003';
insert into dalsegno.post_trees (campaign_id, root_post_id, n_tasks) select campaign_id, id, 3 from dalsegno.posts where origin = 'operator';
insert into dalsegno.post_keys (campaign_id, post_id, key, question_sha256, came_of_it)
select campaign_id, id, 'question-1', sha256('What is new?'), '{"tasks": [], "unknown": [], "notes": []}' from dalsegno.posts
 order by campaign_id, seq limit 1;
