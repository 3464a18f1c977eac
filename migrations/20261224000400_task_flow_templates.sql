-- The flow templates that the agent of a task may start, set by the caller for one task.
--
-- Adds: tasks.flow_templates; the argument flow_templates of add_task, and flows of digest_of_task.

alter table dalsegno.tasks add column flow_templates text[];
comment on column dalsegno.tasks.flow_templates is
  'Names of the flow templates that the agent may start in this task. NULL: those of its file.';

create function dalsegno.are_flow_templates(names text[]) returns boolean language plpgsql immutable parallel safe as $body$
begin
  return cardinality(names) <= 100 and array_position(names, null) is null
     and not exists (select from unnest(names) as n (name) where n.name !~ '^[a-z0-9][a-z0-9_-]{0,63}$');
end
$body$;
comment on function dalsegno.are_flow_templates(text[]) is 'At most 100 names of flow templates.';

-- Without a look at the rows that are there: none of them has a value.
alter table dalsegno.tasks
  add constraint tasks_flow_templates_form check (flow_templates is null or dalsegno.are_flow_templates(flow_templates)) not valid;

create function dalsegno.check_flow_templates(names text[]) returns void language plpgsql immutable as $body$
begin
  if names is not null and not dalsegno.are_flow_templates(names) then
    raise exception using errcode = 'DS400', message = 'cannot add a task: flow_templates are not names of flow templates',
      hint = 'Give at most 100 names as `dalsegno flow templates` prints them.';
  end if;
end
$body$;
comment on function dalsegno.check_flow_templates(text[]) is 'Raises DS400 for texts that are not names of flow templates. NULL: none given.';

------------------------------------------------------------------------------------- adding a task
-- A function gets more arguments as another one in its place. Calls that leave them out stay as they are.
drop function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb);
drop function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb);
drop function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text);

create function dalsegno.digest_of_task(
    campaign_id uuid,
    agent text,
    instance text,
    prompt text,
    session_mode text,
    budget_micros bigint,
    budget_tokens bigint,
    links text default null,
    flows text default null)
  returns text language sql stable parallel safe as $body$
  select dalsegno.fingerprint_of_task(variadic array[
           campaign_id::text, agent, instance, prompt,
           case session_mode when 'continue' then 'Continue' when 'fresh' then 'Fresh' when 'none' then 'None' end
             || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
             || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
         || case when links is null then '{}' else array[links] end
         || case when flows is null then '{}' else array[flows] end)
$body$;
comment on function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text) is
$comment$What an idempotency key compares: SHA-256 in hex over the parts of a question, each in UTF-8 with its length in bytes in front (eight
bytes, big-endian). The parts, in this order:

campaign   in lower case with hyphens
agent, instance, prompt   as they are
limits     session, money and tokens with one blank between: Continue, Fresh or None; each limit None or Some(<decimal number>)
links      only for a task that waits, or that another one hands out: "after <ids, with commas> <run or cancel>", then " parent <id>"
node       only over HTTP and the command line: "node <name>"
flows      only with flow_templates: "flows <names, with commas>"

This form has no version in it. One that differs has to be told apart by a prefix, and compared with this one for as long as keys are
kept.$comment$;

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
    tags text[] default null,
    metadata jsonb default null,
    flow_templates text[] default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
  perform dalsegno.check_flow_templates(flow_templates);
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
      asked => dalsegno.digest_of_task(campaign_id, agent, instance, prompt, session_mode, budget_micros, budget_tokens,
        flows => 'flows ' || array_to_string(flow_templates, ',')),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  if created and flow_templates is not null then
    update dalsegno.tasks as t set flow_templates = add_task.flow_templates where t.id = add_task.task_id;
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[]) is
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
tags, metadata   the caller's own words about the task, to find it by; an idempotency key does not compare them. At most 16 tags of
                 lower-case letters, digits, - _ . and :, each at most 63 characters; a JSON object of at most 8192 bytes
flow_templates   the names of the flow templates that the agent may start in this task; an empty array: none. NULL: those of its file.
                 A name without a file is ignored

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
    tags text[] default null,
    metadata jsonb default null,
    flow_templates text[] default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
  waits boolean := coalesce(cardinality(depends_on), 0) > 0;
  stored record;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
  perform dalsegno.check_flow_templates(flow_templates);
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
        end,
        flows => 'flows ' || array_to_string(flow_templates, ',')),
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  task_id := stored.task_id;
  created := stored.created;
  if created and (parent_id is not null or flow_templates is not null or (waits and run_at is not null)) then
    update dalsegno.tasks as t
       set parent_id = add_task.parent_id, run_at = add_task.run_at, flow_templates = add_task.flow_templates
     where t.id = add_task.task_id;
  end if;
  if created and waits then
    perform dalsegno.await_signal(array[stored.job_id]);
    perform dalsegno.wait_for_tasks(task_id, depends_on, on_failure, run_at);
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[]) is
$comment$As dalsegno.add_task without depends_on, whose comment says what the other arguments mean, for a task that waits for others.

depends_on       tasks of the same campaign, at most 1000, which may have been added in the same transaction. The task runs when all
                 of them have ended, and its agent is told what they came to, in this order. It holds no slot meanwhile, and tasks of
                 its conversation that are added later may run before it. An empty array: it waits for nothing
on_failure       run: it is told of failures, and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled
parent_id        the task that hands this one out: cancelling that one cancels this one

Raises DS404 also for a task that is not there, or is of another campaign.$comment$;
