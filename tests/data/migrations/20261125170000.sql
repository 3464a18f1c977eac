insert into dalsegno.post_trees (campaign_id, root_post_id, n_tasks) select campaign_id, id, 3 from dalsegno.posts where origin = 'operator';
