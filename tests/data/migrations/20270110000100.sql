-- A file of a task, and one that could not be stored.
with content as (
  insert into dalsegno.file_contents (n_bytes, stored_at, sha256, media_type, content)
  values (4, now(), sha256('text'), 'text/plain', 'text') returning sha256)
insert into dalsegno.task_files (stored_at, turn, task_id, sha256, name, problem)
select now(), 1, t.id, n.sha256, n.name, n.problem
  from (select id from dalsegno.tasks where state = 'done' order by id limit 1) as t,
       (select sha256, 'charts/a.csv', null from content
        union all select null, 'long', 'it has 2000 bytes, more than output_files.max_file_bytes (1000)') as n (sha256, name, problem);
