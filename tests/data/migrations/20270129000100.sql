-- Tasks with a time for their answer and with a file of another task, also one that waits.
insert into dalsegno.file_contents (n_bytes, stored_at, sha256, media_type, content) values (16, now(), sha256('Low tide at six.'), 'text/plain', 'Low tide at six.')
  on conflict do nothing;
with source as (
  select a.task_id, a.campaign_id from (select id from dalsegno.campaigns where status = 'active' order by id limit 1) as c,
         lateral (select task_id, c.id as campaign_id from dalsegno.add_task(c.id, 'planner', 'Write the notes.')) as a)
select source.campaign_id, source.task_id into temporary sample_source from source;
insert into dalsegno.task_files (stored_at, turn, task_id, sha256, name) select now(), 1, task_id, sha256('Low tide at six.'), 'notes.md' from sample_source;
select dalsegno.add_task(campaign_id, 'planner', 'Read them.', within_secs => 86400,
                         attachments => jsonb_build_array(jsonb_build_object('task', task_id, 'file', 'notes.md'))) from sample_source;
select dalsegno.add_task(campaign_id, 'planner', 'Read them again.', array[task_id], within_secs => 3600,
                         attachments => jsonb_build_array(jsonb_build_object('task', task_id, 'file', 'notes.md'))) from sample_source;
drop table sample_source;
