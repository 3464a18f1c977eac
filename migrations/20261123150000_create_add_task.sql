-- Adding a task from the transaction of another system, in one call.
--
-- It writes what the service writes itself when it is asked for a task: the task, its job and the first event of its feed. An
-- idempotency key means the same question in both ways, so what is asked has the same fingerprint in both.
create function dalsegno.fingerprint_of_task(variadic parts text[]) returns text language plpgsql stable parallel safe as $body$
declare
  part text;
  bytes bytea;
  asked bytea := '';
begin
  -- Every part with its length in front, so that no two questions share a byte stream.
  foreach part in array parts loop
    bytes := convert_to(part, 'UTF8');
    asked := asked || int8send(octet_length(bytes)::bigint) || bytes;
  end loop;
  return encode(sha256(asked), 'hex');
end
$body$;
comment on function dalsegno.fingerprint_of_task(text[]) is 'SHA-256 over what was asked, in hex. The queue compares it under an idempotency key.';

create function dalsegno.check_new_task(agent text, prompt text, instance text, session_mode text, budget_micros bigint, budget_tokens bigint)
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
        message = format('the prompt has %s bytes, %s are allowed', octet_length(convert_to(prompt, 'UTF8')), max_bytes),
        hint = 'Shorten it, put long material where the agent can look it up, or raise dalsegno.max_prompt_bytes.';
    when agent is null or agent !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
      problem := format('%s is no name of an agent', coalesce('`' || left(agent, 100) || '`', 'NULL'));
      hint := 'Write lower-case letters, digits, - and _, at most 64: the name of one of its files.';
    when instance is null or instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
      problem := format('%s is no name of an instance', coalesce('`' || left(instance, 100) || '`', 'NULL'));
      hint := 'Leave it out for `main`, or write lower-case letters, digits, - and _, at most 64.';
    when session_mode is null or session_mode not in ('continue', 'fresh', 'none') then
      problem := format('session_mode is %s', coalesce('`' || left(session_mode, 100) || '`', 'NULL'));
      hint := 'Use continue, fresh or none.';
    when budget_micros <= 0 or budget_tokens <= 0 then
      problem := 'the budget allows nothing'; hint := 'Leave it out, or give more than 0.';
    else
      return;
  end case;
  raise exception using errcode = 'DS400', message = 'cannot add a task: ' || problem, hint = hint;
end
$body$;
comment on function dalsegno.check_new_task(text, text, text, text, bigint, bigint) is
  'Raises DS400 (bad argument) or DS413 (prompt over dalsegno.max_prompt_bytes, 256 KiB by default).';

create function dalsegno.check_campaign_takes_tasks(campaign_id uuid) returns void language plpgsql stable as $body$
#variable_conflict use_variable
declare
  status text;
  is_spent boolean;
begin
  select c.status into status from dalsegno.campaigns as c where c.id = campaign_id;
  if status is null then
    raise exception using errcode = 'DS404', message = format('there is no campaign %s', coalesce(campaign_id::text, 'NULL')),
      hint = '`dalsegno campaign ls` lists them.';
  elsif status = 'closed' then
    raise exception using errcode = 'DS409', message = format('campaign %s is closed and takes no more tasks', campaign_id),
      hint = 'Create another one: `dalsegno campaign create`.';
  end if;
  select b.spent_micros + s.micros + 1 > b.limit_micros or b.spent_tokens + s.tokens + 1 > b.limit_tokens into is_spent
    from dalsegno.campaign_budgets as b,
         (select coalesce(sum(c.spent_micros), 0) as micros, coalesce(sum(c.spent_tokens), 0) as tokens
            from dalsegno.campaign_spending as c where c.campaign_id = campaign_id) as s
   where b.campaign_id = campaign_id;
  if is_spent then
    raise exception using errcode = 'DS409', message = format('the budget of campaign %s is used up', campaign_id),
      hint = 'Raise the limit with `dalsegno campaign budget`.';
  end if;
end
$body$;
comment on function dalsegno.check_campaign_takes_tasks(uuid) is
  'Raises DS404 (no such campaign) or DS409 (it is closed, or its budget is used up). A look without a lock: the turn decides.';

create function dalsegno.add_task(
    campaign_id uuid,
    agent text,
    prompt text,
    instance text default 'main',
    session_mode text default 'continue',
    budget_micros bigint default null,
    budget_tokens bigint default null,
    idempotency_key text default null,
    priority integer default 100,
    run_at timestamptz default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
  job record;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  if idempotency_key = '' then
    raise exception using errcode = 'DS400', message = 'cannot add a task: idempotency_key is the empty string', hint = 'Pass NULL for none.';
  end if;
  task_id := dalsegno.time_ordered_uuid(moment);
  select e.job_id, e.created into job
    from dalsegno.enqueue(
      kind => 'run_turn',
      payload => jsonb_build_object('asked', dalsegno.fingerprint_of_task(
        campaign_id::text, agent, instance, prompt,
        initcap(session_mode) || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
                              || ' ' || coalesce('Some(' || budget_tokens || ')', 'None'))),
      queue => 'turns',
      lane => campaign_id || '/' || agent || '/' || instance,
      group_key => campaign_id::text,
      priority => priority,
      run_at => run_at,
      max_attempts => 5,
      idempotency_key => 'task:' || idempotency_key,
      headers => jsonb_build_object('task', task_id)) as e;
  created := job.created;
  if not created then
    -- A retry may have given the task another job since.
    select t.id into strict task_id from dalsegno.tasks as t
     where (t.job_id = job.job_id and t.first_job_id is null) or t.first_job_id = job.job_id;
    return;
  end if;
  -- Only what is new: whoever asks again is told of the task that is there, whatever became of its campaign.
  perform dalsegno.check_campaign_takes_tasks(campaign_id);
  insert into dalsegno.tasks (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt)
  values (task_id, campaign_id, job.job_id, moment, budget_micros, budget_tokens, session_mode, agent, instance, prompt);
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (moment, campaign_id, task_id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz) is
$comment$Asks an agent to do something in a campaign, in the caller's transaction: the task and its job exist exactly if it commits.

campaign_id      an open campaign
agent            the name of an agent's file. Whether there is one is seen by the worker: a task for nobody fails, and says so
prompt           what is asked; at most dalsegno.max_prompt_bytes (262144)
instance         which one of several copies of the agent; each has a conversation of its own
session_mode     continue the conversation, begin a fresh one, or none: one that nobody continues. What an agent's file says
                 about this and about budgets is known to the service and not here
budget_micros, budget_tokens   what the task may cost, in millionths of the currency and in tokens
idempotency_key  the same key and question give the same task (created = false), through HTTP and the command line too;
                 another question under the same key raises DS409
priority         0 is the most urgent; 100 is usual
run_at           not before this moment

Returns the id of the task, and whether this call made it. Raises DS400 for a bad argument, DS404 for an unknown campaign,
DS409 for a closed one, one whose budget is used up, or a key that is taken, DS413 for a prompt that is too long; each with a hint.
Holds the lane of the conversation until the caller's transaction ends, so that tasks are taken in the order of commits:
keep that transaction short, and add tasks near its end.$comment$;
