-- Reads through the index.
select count(*) from dalsegno.tasks
 where ended_at is not null and dalsegno.task_words(prompt, result, created_at) @@ dalsegno.text_query('part');
