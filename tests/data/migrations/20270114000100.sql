-- An attachment of a task.
with content as (
  insert into dalsegno.file_contents (n_bytes, stored_at, sha256, media_type, content)
  values (8, now(), sha256('attached'), 'text/plain', 'attached') returning sha256)
insert into dalsegno.task_attachments (attached_at, position, task_id, sha256, name)
select now(), 1, t.id, content.sha256, 'notes.txt'
  from (select id from dalsegno.tasks where state = 'done' order by id limit 1) as t, content;
