-- Checks of a new task: the messages in plain English. Only texts change.

create or replace function dalsegno.check_new_task(agent text, prompt text, instance text, session_mode text, budget_micros bigint, budget_tokens bigint)
  returns void language plpgsql stable as $body$
declare
  max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_prompt_bytes', true), '')::bigint, 262144);
  problem text;
  hint text;
begin
  case
    when prompt is null or prompt !~ '[^[:space:]]' then
      problem := 'the prompt is empty'; hint := 'Write what the agent should do.';
    when octet_length(convert_to(prompt, 'UTF8')) > max_bytes then
      raise exception using errcode = 'DS413',
        message = format('the prompt has %s bytes, at most %s are allowed', octet_length(convert_to(prompt, 'UTF8')), max_bytes),
        hint = 'Shorten it, put long material where the agent can look it up, or raise dalsegno.max_prompt_bytes.';
    when agent is null or agent !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
      problem := format('%s is not a valid name of an agent', coalesce('`' || left(agent, 100) || '`', 'NULL'));
      hint := 'Use lower-case letters, digits, - and _, at most 64. The name is that of the agent''s file.';
    when instance is null or instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
      problem := format('%s is not a valid name of an instance', coalesce('`' || left(instance, 100) || '`', 'NULL'));
      hint := 'Leave it out for `main`, or use lower-case letters, digits, - and _, at most 64.';
    when session_mode is null or session_mode not in ('continue', 'fresh', 'none') then
      problem := format('session_mode is %s', coalesce('`' || left(session_mode, 100) || '`', 'NULL'));
      hint := 'Use continue, fresh or none.';
    when budget_micros <= 0 or budget_tokens <= 0 then
      problem := 'the budget must be more than 0'; hint := 'Raise it, or leave it out for no limit.';
    else
      return;
  end case;
  raise exception using errcode = 'DS400', message = 'cannot add a task: ' || problem, hint = hint;
end
$body$;
