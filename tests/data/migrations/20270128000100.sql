-- A job that waits is cancelled.
select dalsegno.cancel((select job_id from dalsegno.enqueue('sample')), 'not wanted');
