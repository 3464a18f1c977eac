-- A task that gives a day for its answer.
update dalsegno.tasks set within_secs = 86400 where id = (select id from dalsegno.tasks where state = 'done' order by id limit 1);
