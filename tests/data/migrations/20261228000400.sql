-- Reads through the index.
select id from dalsegno.tasks where state = 'failed' order by id desc limit 1;
