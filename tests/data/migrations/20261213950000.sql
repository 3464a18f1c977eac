-- A job that is there but not held is told from one that does not exist.
do $$
begin
    perform dalsegno.release_job(id) from dalsegno.jobs where hold_reason is null limit 1;
exception when sqlstate 'DS409' then
    null;
end
$$;
