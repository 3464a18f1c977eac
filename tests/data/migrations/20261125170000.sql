update dalsegno.tasks set root_post_id = post_id where post_id is not null;
