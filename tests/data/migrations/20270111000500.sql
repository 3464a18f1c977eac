-- Changes nothing: no task waits for a rate limit.
select dalsegno.lease_rate_limits('00000000-0000-7000-8000-000000000001', '[]', '{}', now());
