-- An idempotency key of a task belongs to its caller within its campaign: others cannot take it, find it or see what it stands for.
--
-- Keys that are stored already, and those that an older version still stores, have the form 'task:<key>'. Such a key counts for the caller
-- and the campaign of its task. For an older version that runs beside this one, each new key is stored in that form, too, unless
-- it is taken: what an older version does not see, it would add again.

create function dalsegno.caller_of(added_by text)
  returns text language sql immutable parallel safe as $body$
  select coalesce(substring(added_by from '^key:([A-Za-z0-9][A-Za-z0-9._-]*):[0-9a-f]{12}$'), '')
$body$;
comment on function dalsegno.caller_of(text) is
$comment$The caller that a label of the audit log names: the name of an API key, which a rotation does not change. Everything without an API
key is one caller, whose name is empty: SQL, the command line, loopback, the key of the configuration, agents.$comment$;

create function dalsegno.task_key(campaign_id uuid, caller text, key text)
  returns text language sql stable parallel safe as $body$
  select 'task/' || encode(sha256(convert_to(campaign_id || '/' || caller || '/' || key, 'UTF8')), 'hex')
$body$;
comment on function dalsegno.task_key(uuid, text, text) is
  'The idempotency key of the job of a task. Callers have no slash in their names.';

create function dalsegno.adopt_task_keys(campaign_id uuid, caller text, keys text[])
  returns table (key text, stored text) language plpgsql as $body$
#variable_conflict use_column
begin
  -- Step by step: what is stored in the form of this version needs no look at the tasks, and that is nearly all.
  with old as materialized (
    select k.key, o.job_id, o.fingerprint, o.created_at
      from (select distinct u.key from unnest(keys) as u (key)) as k
      join dalsegno.idempotency_keys as o on o.key = 'task:' || k.key
     where not exists (select from dalsegno.idempotency_keys as i
                        where i.key = dalsegno.task_key(adopt_task_keys.campaign_id, adopt_task_keys.caller, k.key))
  )
  insert into dalsegno.idempotency_keys (key, job_id, fingerprint, created_at)
  select dalsegno.task_key(adopt_task_keys.campaign_id, adopt_task_keys.caller, o.key), o.job_id, o.fingerprint, o.created_at
    from old as o
    -- The limit keeps the planner from reading all tasks of the campaign.
    cross join lateral (
      (select t.campaign_id, t.added_by from dalsegno.tasks as t where t.job_id = o.job_id and t.first_job_id is null
       union all
       select t.campaign_id, t.added_by from dalsegno.tasks as t where t.first_job_id = o.job_id)
      limit 1) as t
   where t.campaign_id = adopt_task_keys.campaign_id and dalsegno.caller_of(t.added_by) = adopt_task_keys.caller
   order by o.key
  on conflict on constraint idempotency_keys_pkey do nothing;
  return query
    select k.key, dalsegno.task_key(adopt_task_keys.campaign_id, adopt_task_keys.caller, k.key)
      from (select distinct u.key from unnest(keys) as u (key)) as k;
end
$body$;
comment on function dalsegno.adopt_task_keys(uuid, text, text[]) is
$comment$The idempotency keys of the jobs of tasks, by the keys that a caller chose. A key that an older version has stored for this caller
and campaign becomes one of them.$comment$;

create function dalsegno.show_task_keys(campaign_id uuid, caller text, keys text[])
  returns void language plpgsql as $body$
#variable_conflict use_column
declare
  n_shown bigint;
  twice text;
begin
  insert into dalsegno.idempotency_keys (key, job_id, fingerprint, created_at)
  select 'task:' || k.key, i.job_id, i.fingerprint, i.created_at
    from (select distinct u.key from unnest(keys) as u (key)) as k
    join dalsegno.idempotency_keys as i on i.key = dalsegno.task_key(show_task_keys.campaign_id, show_task_keys.caller, k.key)
   -- All take them in the same order, so that two do not wait for each other in a circle.
   order by k.key
  on conflict on constraint idempotency_keys_pkey do nothing;
  get diagnostics n_shown = row_count;
  if n_shown = cardinality(keys) then
    return;
  end if;
  with old as materialized (
    select k.key, o.job_id
      from unnest(keys) as k (key)
      join dalsegno.idempotency_keys as i on i.key = dalsegno.task_key(show_task_keys.campaign_id, show_task_keys.caller, k.key)
      join dalsegno.idempotency_keys as o on o.key = 'task:' || k.key and o.job_id <> i.job_id
  )
  select o.key into twice
    from old as o
    cross join lateral (
      (select t.campaign_id, t.added_by from dalsegno.tasks as t where t.job_id = o.job_id and t.first_job_id is null
       union all
       select t.campaign_id, t.added_by from dalsegno.tasks as t where t.first_job_id = o.job_id)
      limit 1) as t
   where t.campaign_id = show_task_keys.campaign_id and dalsegno.caller_of(t.added_by) = show_task_keys.caller
   limit 1;
  if found then
    raise exception using errcode = 'serialization_failure',
      message = format('an older version has used the idempotency key "%s" at the same moment', twice), hint = 'Ask again.';
  end if;
end
$body$;
comment on function dalsegno.show_task_keys(uuid, text, text[]) is
$comment$Stores new keys of tasks in the form that an older version looks for, unless another caller has the text. Raises
serialization_failure where an older version has added a task under one of them since dalsegno.adopt_task_keys.$comment$;

create or replace function dalsegno.store_task(
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
  caller text := dalsegno.caller_of(added_by);
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
    select a.stored into stored_key from dalsegno.adopt_task_keys(campaign_id, caller, array[idempotency_key]) as a;
    -- In the words of the caller; dalsegno.enqueue would name the key as it is stored.
    if exists (select from dalsegno.idempotency_keys as i
                where i.key = stored_key
                  and i.fingerprint <> sha256(convert_to(jsonb_build_array(kind, lane, payload)::text, 'UTF8'))) then
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
  -- Only what is new: whoever asks again is told of the task that is there, whatever became of its campaign.
  perform dalsegno.check_campaign_takes_tasks(campaign_id);
  with stored as (
    insert into dalsegno.tasks (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt,
                                added_by, traceparent, priority, run_at)
    values (id, campaign_id, job_id, at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, added_by, traceparent,
            priority, nullif(run_at, dalsegno.never()))
  )
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (at, campaign_id, id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
  if idempotency_key is not null then
    perform dalsegno.show_task_keys(campaign_id, caller, array[idempotency_key]);
  end if;
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
idempotency_key  the same key and question give the same task (created = false) within the campaign, through the command line and
                 through HTTP without an API key too; another question under the same key raises DS409. Each API key has keys of its own
priority         0 is the most urgent; 100 is usual
run_at           not before this moment

Returns the id of the task, and whether this call made it. Raises DS400 for a bad argument, DS404 for an unknown campaign,
DS409 for a closed one, one whose budget is used up, or a key that is taken, DS413 for a prompt that is too long; each with a hint.
Holds the lane of the conversation until the caller's transaction ends, so that tasks are taken in the order of commits:
keep that transaction short, and add tasks near its end.$comment$;
