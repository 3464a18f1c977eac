insert into dalsegno.post_keys (campaign_id, post_id, key, question_sha256, came_of_it)
select campaign_id, id, 'question-1', sha256('What is new?'), '{"tasks": [], "unknown": [], "notes": []}' from dalsegno.posts
 order by campaign_id, seq limit 1;
