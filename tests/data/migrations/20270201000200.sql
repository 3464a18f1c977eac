-- The waits that are not over, for the index.
select task_id, since from dalsegno.busy_tasks where until > now() - interval '1 hour';
