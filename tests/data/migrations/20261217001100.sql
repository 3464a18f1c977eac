-- The checks still refuse what they refused.
do $$
begin
  perform dalsegno.check_new_task('Copy Writer', 'Write.', 'main', 'continue', null, null);
  raise exception 'a bad name of an agent was accepted';
exception when sqlstate 'DS400' then
  null;
end
$$;
