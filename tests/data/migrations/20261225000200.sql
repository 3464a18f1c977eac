-- A failed task and one that is not, for the index.
select count(*) from dalsegno.tasks where state = 'failed';
