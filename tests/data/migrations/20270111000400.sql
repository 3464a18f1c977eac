-- Changes nothing: no task waits for a rate limit.
select dalsegno.put_ahead('{}');
