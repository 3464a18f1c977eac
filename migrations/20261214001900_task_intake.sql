-- Adding tasks: one function behind all ways. HTTP, the command line and schedules call dalsegno.store_task, as dalsegno.add_task does,
-- which other systems call in their own transactions.
--
-- An idempotency key of a task belongs to its caller within its campaign: others cannot take it, find it or see what it stands for.

--------------------------------------------------------------------------------------------- checks
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

----------------------------------------------------------------------------------- idempotency keys
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
comment on function dalsegno.fingerprint_of_task(text[]) is
  'SHA-256 over the parts of a request, in hex. The queue compares it under an idempotency key.';

create function dalsegno.digest_of_task(
    campaign_id uuid,
    agent text,
    instance text,
    prompt text,
    session_mode text,
    budget_micros bigint,
    budget_tokens bigint,
    links text default null)
  returns text language sql stable parallel safe as $body$
  select dalsegno.fingerprint_of_task(variadic array[
           campaign_id::text, agent, instance, prompt,
           case session_mode when 'continue' then 'Continue' when 'fresh' then 'Fresh' when 'none' then 'None' end
             || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
             || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
         || case when links is null then '{}' else array[links] end)
$body$;
comment on function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text) is
$comment$What an idempotency key compares: SHA-256 in hex over the parts of a question, each in UTF-8 with its length in bytes in front (eight
bytes, big-endian). The parts, in this order:

campaign   in lower case with hyphens
agent, instance, prompt   as they are
limits     session, money and tokens with one blank between: Continue, Fresh or None; each limit None or Some(<decimal number>)
links      only for a task that waits, or that another one hands out: "after <ids, with commas> <run or cancel>", then " parent <id>"
node       only over HTTP and the command line: "node <name>"

This form has no version in it. One that differs has to be told apart by a prefix, and compared with this one for as long as keys are
kept.$comment$;

create function dalsegno.task_key(campaign_id uuid, caller text, key text)
  returns text language sql stable parallel safe as $body$
  select 'task/' || encode(sha256(convert_to(campaign_id || '/' || caller || '/' || key, 'UTF8')), 'hex')
$body$;
comment on function dalsegno.task_key(uuid, text, text) is
  'The idempotency key of the job of a task. Callers have no slash in their names.';

-------------------------------------------------------------------------------------------- storing
create function dalsegno.store_task(
    id uuid,
    at timestamptz,
    campaign_id uuid,
    agent text,
    instance text,
    prompt text,
    session_mode text,
    budget_micros bigint,
    budget_tokens bigint,
    idempotency_key text,
    priority integer,
    run_at timestamptz,
    asked text,
    kind text,
    queue text,
    max_attempts integer,
    added_by text default null,
    traceparent text default null,
    out task_id uuid, out job_id bigint, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  lane text := campaign_id || '/' || agent || '/' || instance;
  payload jsonb := jsonb_build_object('asked', asked);
  stored_key text;
begin
  task_id := id;
  if idempotency_key is not null then
    if char_length(idempotency_key) > 195 then
      raise exception using errcode = 'DS400',
        message = format('cannot add a task: idempotency_key has %s characters, the limit is 195', char_length(idempotency_key)),
        hint = 'Use a hash of it.';
    end if;
    stored_key := dalsegno.task_key(campaign_id, dalsegno.caller_of(added_by), idempotency_key);
    -- In the words of the caller; dalsegno.enqueue would name the key as it is stored.
    if dalsegno.is_conflicting_key(stored_key, kind, lane, payload) then
      raise exception using errcode = 'DS409', message = format('idempotency key "%s" already stands for another question', idempotency_key),
        hint = 'Use a new key for a new task; repeat the same call to get the same task.';
    end if;
  end if;
  select e.job_id, e.created into job_id, created
    from dalsegno.enqueue(
      kind => kind,
      payload => payload,
      queue => queue,
      lane => lane,
      group_key => campaign_id::text,
      priority => priority,
      run_at => run_at,
      max_attempts => max_attempts,
      idempotency_key => stored_key,
      headers => jsonb_build_object('task', id)) as e;
  if not created then
    -- A retry may have given the task another job since.
    task_id := (select t.id from dalsegno.tasks as t
                 where (t.job_id = store_task.job_id and t.first_job_id is null) or t.first_job_id = store_task.job_id);
    return;
  end if;
  -- Only for a new task: a repeated request returns the existing task, even if its campaign is closed by now.
  perform dalsegno.check_campaign_takes_tasks(campaign_id);
  with stored as (
    insert into dalsegno.tasks (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt,
                                added_by, traceparent, priority, run_at)
    values (id, campaign_id, job_id, at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, added_by, traceparent,
            priority, nullif(run_at, dalsegno.never()))
  )
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (at, campaign_id, id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
end
$body$;
comment on function dalsegno.store_task(uuid, timestamptz, uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text, text, text, integer, text, text) is
$comment$Writes a task, its job and the first event of its feed. The service's own way in, and what dalsegno.add_task calls; not for
other systems. What is asked was checked before, and asked is its fingerprint. Returns the task of an earlier call with the same
idempotency key (created = false); task_id is NULL where the key stands for a job that is no task's. Raises what
dalsegno.check_campaign_takes_tasks and dalsegno.enqueue do.$comment$;

create function dalsegno.store_tasks(tasks jsonb)
  returns table (task_id uuid, job_id bigint, created boolean)
  language plpgsql set lock_timeout = '50ms' as $body$
begin
  return query
  select s.task_id, s.job_id, s.created
    from rows from (jsonb_to_recordset(tasks) as (id uuid, at timestamptz, campaign_id uuid, agent text, instance text, prompt text,
           session_mode text, budget_micros bigint, budget_tokens bigint, idempotency_key text, priority integer, run_at timestamptz,
           asked text, kind text, queue text, max_attempts integer, added_by text, traceparent text)) with ordinality as t
   cross join lateral dalsegno.store_task(t.id, t.at, t.campaign_id, t.agent, t.instance, t.prompt, t.session_mode, t.budget_micros,
           t.budget_tokens, t.idempotency_key, t.priority, t.run_at, t.asked, t.kind, t.queue, t.max_attempts, t.added_by,
           t.traceparent) as s
   order by t.ordinality;
end
$body$;
comment on function dalsegno.store_tasks(jsonb) is
$comment$dalsegno.store_task() for each element of an array, whose keys are its arguments, in this order and in one transaction. One that
is refused fails all. Waits for no lock longer than 50 ms: those who are asked together must not wait for whom only one of them
has to wait for. Then they are asked one by one.$comment$;

---------------------------------------------------------------------------------- for other systems
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
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  if idempotency_key = '' then
    raise exception using errcode = 'DS400', message = 'cannot add a task: idempotency_key is the empty string', hint = 'Pass NULL for none.';
  end if;
  select s.task_id, s.created into task_id, created
    from dalsegno.store_task(
      id => dalsegno.time_ordered_uuid(moment),
      at => moment,
      campaign_id => campaign_id,
      agent => agent,
      instance => instance,
      prompt => prompt,
      session_mode => session_mode,
      budget_micros => budget_micros,
      budget_tokens => budget_tokens,
      idempotency_key => idempotency_key,
      priority => priority,
      run_at => run_at,
      asked => dalsegno.digest_of_task(campaign_id, agent, instance, prompt, session_mode, budget_micros, budget_tokens),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5) as s;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz) is
$comment$Asks an agent to do something in a campaign, in the caller's transaction: the task and its job exist exactly if it commits.

campaign_id      an open campaign
agent            the name of an agent's file. The worker looks for the file: a task for an unknown
                 agent fails with an error that says so
prompt           what is asked; at most dalsegno.max_prompt_bytes (262144)
instance         which one of several copies of the agent; each has a conversation of its own
session_mode     continue the conversation, begin a fresh one, or none: one that no later task continues. The agent's file, with its
                 own session mode and budgets, is known to the service and not here
budget_micros, budget_tokens   what the task may cost, in millionths of the currency and in tokens
idempotency_key  the same key and question give the same task (created = false) within the campaign, through the command line and
                 through HTTP without an API key too; another question under the same key raises DS409. Each API key has keys of its own
priority         0 is the most urgent; 100 is usual
run_at           not before this moment

Returns the id of the task, and whether this call made it. Raises DS400 for a bad argument, DS404 for an unknown campaign,
DS409 for a closed one, one whose budget is used up, or a key that is taken, DS413 for a prompt that is too long; each with a hint.
Holds the lane of the conversation until the caller's transaction ends, so that tasks are taken in the order of commits:
keep that transaction short, and add tasks near its end.$comment$;

create function dalsegno.add_task(
    campaign_id uuid,
    agent text,
    prompt text,
    depends_on uuid[],
    on_failure text default 'run',
    parent_id uuid default null,
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
  waits boolean := coalesce(cardinality(depends_on), 0) > 0;
  stored record;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  if idempotency_key = '' then
    raise exception using errcode = 'DS400', message = 'cannot add a task: idempotency_key is the empty string', hint = 'Pass NULL for none.';
  elsif parent_id is not null and not exists (select from dalsegno.tasks as t where t.id = parent_id and t.campaign_id = add_task.campaign_id) then
    raise exception using errcode = 'DS404', message = format('there is no task %s in campaign %s that could hand this one out', parent_id, campaign_id),
      hint = '`dalsegno task ls` lists them.';
  end if;
  select s.* into stored
    from dalsegno.store_task(
      id => dalsegno.time_ordered_uuid(moment),
      at => moment,
      campaign_id => campaign_id,
      agent => agent,
      instance => instance,
      prompt => prompt,
      session_mode => session_mode,
      budget_micros => budget_micros,
      budget_tokens => budget_tokens,
      idempotency_key => idempotency_key,
      priority => priority,
      run_at => case when waits then dalsegno.never() else run_at end,
      asked => dalsegno.digest_of_task(campaign_id, agent, instance, prompt, session_mode, budget_micros, budget_tokens,
        case when waits or parent_id is not null
             then 'after ' || coalesce(array_to_string(depends_on, ','), '') || ' ' || on_failure || coalesce(' parent ' || parent_id, '')
        end),
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      queue => 'turns',
      max_attempts => 5) as s;
  task_id := stored.task_id;
  created := stored.created;
  if created and (parent_id is not null or (waits and run_at is not null)) then
    update dalsegno.tasks as t set parent_id = add_task.parent_id, run_at = add_task.run_at where t.id = add_task.task_id;
  end if;
  if created and waits then
    perform dalsegno.await_signal(array[stored.job_id]);
    perform dalsegno.wait_for_tasks(task_id, depends_on, on_failure, run_at);
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz) is
$comment$As dalsegno.add_task without depends_on, whose comment says what the other arguments mean, for a task that waits for others.

depends_on       tasks of the same campaign, at most 1000, which may have been added in the same transaction. The task runs when all
                 of them have ended, and its agent is told what they came to, in this order. It holds no slot meanwhile, and tasks of
                 its conversation that are added later may run before it. An empty array: it waits for nothing
on_failure       run: it is told of failures, and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled
parent_id        the task that hands this one out: cancelling that one cancels this one

Raises DS404 also for a task that is not there, or is of another campaign.$comment$;
