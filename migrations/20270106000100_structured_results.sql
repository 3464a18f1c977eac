-- Structured results: a task may have a JSON Schema that its answer has to match, and then has the answer as JSON beside the text.
--
-- Adds: tasks.result_schema, result_json, result_fault, n_corrections and step_fields; the argument result_schema of add_task; both texts
-- in messages of webhooks and in what an erasure measures and removes.

alter table dalsegno.tasks
  add column result_schema jsonb,
  add column result_json jsonb,
  add column result_fault text,
  add column n_corrections smallint not null default 0,
  add column step_fields jsonb;
comment on column dalsegno.tasks.result_schema is
  'The JSON Schema that the answer has to match, from the caller or the step. NULL: the one of the agent''s file, if it has one.';
comment on column dalsegno.tasks.result_json is 'The answer as JSON. NULL: the task has no schema, or is not done.';
comment on column dalsegno.tasks.result_fault is
  'Why the last answer does not match the schema. Set while the next turn is to correct it.';
comment on column dalsegno.tasks.n_corrections is 'Number of corrections that were asked for since the task was last queued.';
comment on column dalsegno.tasks.step_fields is
  'Places in the prompt that stand for fields of results of earlier steps: a list of {at, length, step, path}, in bytes. NULL: none.';

create function dalsegno.is_result_schema(schema jsonb) returns boolean language plpgsql immutable parallel safe as $body$
begin
  -- As Postgres writes it, which is longer than the text that the service limits to 32768 bytes.
  return jsonb_typeof(schema) = 'object' and octet_length(schema::text) <= 65536;
end
$body$;
comment on function dalsegno.is_result_schema(jsonb) is 'An object of at most 65536 bytes, as Postgres writes it.';

-- Without a look at the rows that are there: none of them has a value.
alter table dalsegno.tasks
  add constraint tasks_result_schema_form check (result_schema is null or dalsegno.is_result_schema(result_schema)) not valid,
  add constraint tasks_result_json_of_done check (result_json is null or state = 'done') not valid,
  add constraint tasks_correction_counted check (result_fault is null or n_corrections > 0) not valid;

-- A failed task may have a result: its last answer, which does not match the schema.
create or replace function dalsegno.is_consistent_task(
  state text, started_at timestamptz, ended_at timestamptz, has_result boolean, has_error boolean, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return state in ('queued', 'running', 'done', 'failed', 'cancelled')
     and (state in ('done', 'failed', 'cancelled')) = (ended_at is not null)
     and (state <> 'done' or has_result)
     and (state = 'failed') = has_error
     and (state <> 'running' or started_at is not null)
     and least_count >= 0;
end
$body$;

------------------------------------------------------------------------------------ checks in SQL
-- The service checks a schema with a validator. SQL knows the keywords only: it refuses what it cannot judge, so that no schema is
-- accepted that a worker would refuse later.
create function dalsegno.fault_of_result_schema(root jsonb, schema jsonb, place text) returns text
  language plpgsql immutable parallel safe as $body$
declare
  entry record;
  child record;
  here text;
  fault text;
begin
  if jsonb_typeof(schema) = 'boolean' then
    return null;
  elsif jsonb_typeof(schema) <> 'object' then
    return place || ' is not a schema';
  end if;
  for entry in select e.key, e.value, jsonb_typeof(e.value) as kind, e.value #>> '{}' as text from jsonb_each(schema) as e loop
    here := place || '/' || entry.key;
    for child in
      select s.value, here || '/' || s.key as place
        from jsonb_each(case when entry.key in ('properties', '$defs', 'definitions', 'dependentSchemas') and entry.kind = 'object'
                             then entry.value else '{}' end) as s
      union all
      select s.value, here || '/' || (s.place - 1)
        from jsonb_array_elements(case when entry.key in ('allOf', 'anyOf', 'oneOf', 'prefixItems') and entry.kind = 'array'
                                       then entry.value else '[]' end) with ordinality as s (value, place)
      union all
      select entry.value, here
       where entry.key in ('items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames', 'unevaluatedItems',
                           'unevaluatedProperties')
    loop
      fault := dalsegno.fault_of_result_schema(root, child.value, child.place);
      if fault is not null then
        return fault;
      end if;
    end loop;
    if entry.key in ('properties', '$defs', 'definitions', 'dependentSchemas') then
      fault := case when entry.kind <> 'object' then here || ' is not an object of schemas' end;
    elsif entry.key in ('allOf', 'anyOf', 'oneOf', 'prefixItems') then
      fault := case when entry.kind <> 'array' or entry.value = '[]' then here || ' is not a list of schemas' end;
    elsif entry.key = '$ref' then
      fault := case when entry.kind <> 'string' or entry.text not like '#%' then here || ' refers to another document'
                    when entry.text <> '#' and (entry.text not like '#/%' or entry.text ~ '[~%]'
                         or root #> string_to_array(substr(entry.text, 3), '/') is null)
                    then here || ' refers to ' || entry.text || ', which the schema does not have' end;
    elsif entry.key = 'type' then
      fault := case when exists (
                      select from jsonb_array_elements(case entry.kind when 'array' then entry.value else jsonb_build_array(entry.value) end) as t
                       where t.value #>> '{}' is null or jsonb_typeof(t.value) <> 'string'
                          or t.value #>> '{}' not in ('object', 'array', 'string', 'number', 'integer', 'boolean', 'null'))
                      or entry.value = '[]'
                    then here || ' is not a type' end;
    elsif entry.key in ('enum', 'examples') then
      fault := case when entry.kind <> 'array' then here || ' is not a list' end;
    elsif entry.key = 'required' then
      fault := case when entry.kind <> 'array' then here || ' is not a list of names'
                    when exists (select from jsonb_array_elements(entry.value) as r where jsonb_typeof(r.value) <> 'string')
                      or jsonb_array_length(entry.value) <> (select count(distinct r.value) from jsonb_array_elements(entry.value) as r)
                    then here || ' is not a list of different names' end;
    elsif entry.key in ('minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'minContains', 'maxContains') then
      fault := case when entry.kind <> 'number' or entry.text !~ '^[0-9]{1,9}$' then here || ' is not a whole number' end;
    elsif entry.key in ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf') then
      fault := case when entry.kind <> 'number' then here || ' is not a number'
                    when entry.key = 'multipleOf' and entry.text::numeric <= 0 then here || ' is not above 0' end;
    elsif entry.key in ('uniqueItems', 'deprecated', 'readOnly', 'writeOnly') then
      fault := case when entry.kind <> 'boolean' then here || ' is not true or false' end;
    elsif entry.key in ('title', 'description', '$comment', 'format') then
      fault := case when entry.kind <> 'string' then here || ' is not a text' end;
    elsif entry.key = '$schema' then
      fault := case when entry.text is distinct from 'https://json-schema.org/draft/2020-12/schema' then here || ' is not draft 2020-12' end;
    elsif entry.key not in ('const', 'default', 'items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames',
                            'unevaluatedItems', 'unevaluatedProperties') then
      fault := here || ' cannot be checked in SQL';
    end if;
    if fault is not null then
      return fault;
    end if;
  end loop;
  return null;
end
$body$;
comment on function dalsegno.fault_of_result_schema(jsonb, jsonb, text) is
  'Says what is wrong with a part of a result schema, and where; NULL if nothing is.';

create function dalsegno.check_result_schema(schema jsonb) returns void language plpgsql immutable as $body$
declare
  fault text;
begin
  if schema is null then
    return;
  elsif not dalsegno.is_result_schema(schema) then
    raise exception using errcode = 'DS400', message = 'cannot add a task: the result schema is not a JSON object of at most 65536 bytes',
      hint = 'Give a JSON Schema such as {"type": "object", "required": ["title"]}.';
  end if;
  fault := dalsegno.fault_of_result_schema(schema, schema, '#');
  if fault is not null then
    raise exception using errcode = 'DS400', message = 'cannot add a task: the result schema is invalid: ' || fault,
      hint = 'Correct it there. SQL checks types, properties, items, limits, enum, $defs and $ref within the schema; patterns and identifiers need HTTP or the command line.';
  end if;
end
$body$;
comment on function dalsegno.check_result_schema(jsonb) is 'Raises DS400 for a result schema that cannot be used. NULL: none.';

------------------------------------------------------------------------------------- adding a task
create function dalsegno.canonical_json(value jsonb) returns text language plpgsql immutable strict parallel safe as $body$
begin
  return case jsonb_typeof(value)
    when 'object' then
      (select '{' || coalesce(string_agg(to_json(e.key)::text || ':' || dalsegno.canonical_json(e.value), ',' order by e.key collate "C"), '') || '}'
         from jsonb_each(value) as e)
    when 'array' then
      (select '[' || coalesce(string_agg(dalsegno.canonical_json(e.value), ',' order by e.place), '') || ']'
         from jsonb_array_elements(value) with ordinality as e (value, place))
    else value::text
  end;
end
$body$;
comment on function dalsegno.canonical_json(jsonb) is
  'JSON without blanks, with keys in the order of their bytes, as the service writes it. Both have to agree: a digest contains it.';

-- A function gets more arguments as another one in its place. Calls that leave them out stay as they are.
drop function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[]);
drop function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[]);
drop function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text);

create function dalsegno.digest_of_task(
    campaign_id uuid,
    agent text,
    instance text,
    prompt text,
    session_mode text,
    budget_micros bigint,
    budget_tokens bigint,
    links text default null,
    flows text default null,
    result_schema text default null)
  returns text language sql stable parallel safe as $body$
  select dalsegno.fingerprint_of_task(variadic array[
           campaign_id::text, agent, instance, prompt,
           case session_mode when 'continue' then 'Continue' when 'fresh' then 'Fresh' when 'none' then 'None' end
             || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
             || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
         || case when links is null then '{}' else array[links] end
         || case when flows is null then '{}' else array[flows] end
         || case when result_schema is null then '{}' else array[result_schema] end)
$body$;
comment on function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text, text) is
$comment$What an idempotency key compares: SHA-256 in hex over the parts of a question, each in UTF-8 with its length in bytes in front (eight
bytes, big-endian). The parts, in this order:

campaign   in lower case with hyphens
agent, instance, prompt   as they are
limits     session, money and tokens with one blank between: Continue, Fresh or None; each limit None or Some(<decimal number>)
links      only for a task that waits, or that another one hands out: "after <ids, with commas> <run or cancel>", then " parent <id>"
node       only over HTTP and the command line: "node <name>"
flows      only with flow_templates: "flows <names, with commas>"
schema     only with result_schema: "result_schema <dalsegno.canonical_json>"

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
    result_schema jsonb default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
  perform dalsegno.check_flow_templates(flow_templates);
  perform dalsegno.check_result_schema(result_schema);
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
        flows => 'flows ' || array_to_string(flow_templates, ','), result_schema => 'result_schema ' || dalsegno.canonical_json(result_schema)),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  if created and (flow_templates is not null or result_schema is not null) then
    update dalsegno.tasks as t set flow_templates = add_task.flow_templates, result_schema = add_task.result_schema
     where t.id = add_task.task_id;
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb) is
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
result_schema    the JSON Schema that the answer has to match; the task then has the answer in result_json, too. NULL: that of the
                 agent's file

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
    result_schema jsonb default null,
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
  perform dalsegno.check_result_schema(result_schema);
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
        flows => 'flows ' || array_to_string(flow_templates, ','), result_schema => 'result_schema ' || dalsegno.canonical_json(result_schema)),
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  task_id := stored.task_id;
  created := stored.created;
  if created and (parent_id is not null or flow_templates is not null or result_schema is not null or (waits and run_at is not null)) then
    update dalsegno.tasks as t
       set parent_id = add_task.parent_id, run_at = add_task.run_at, flow_templates = add_task.flow_templates,
           result_schema = add_task.result_schema
     where t.id = add_task.task_id;
  end if;
  if created and waits then
    perform dalsegno.await_signal(array[stored.job_id]);
    perform dalsegno.wait_for_tasks(task_id, depends_on, on_failure, run_at);
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb) is
$comment$As dalsegno.add_task without depends_on, whose comment says what the other arguments mean, for a task that waits for others.

depends_on       tasks of the same campaign, at most 1000, which may have been added in the same transaction. The task runs when all
                 of them have ended, and its agent is told what they came to, in this order. It holds no slot meanwhile, and tasks of
                 its conversation that are added later may run before it. An empty array: it waits for nothing
on_failure       run: it is told of failures, and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled
parent_id        the task that hands this one out: cancelling that one cancels this one

Raises DS404 also for a task that is not there, or is of another campaign.$comment$;

------------------------------------------------------------------------------------------ webhooks
create or replace function dalsegno.webhook_body(task dalsegno.tasks) returns text language sql stable as $body$
  -- A receiver gets the beginning of a long text, and asks for the rest.
  select json_build_object(
    'type', 'task.' || task.state,
    'timestamp', dalsegno.webhook_time(task.ended_at),
    'data', json_build_object(
      'task_id', task.id,
      'campaign_id', task.campaign_id,
      'agent', task.agent,
      'instance', task.instance,
      'state', task.state,
      'session_id', task.session_id,
      'turn', task.turn,
      'created_at', dalsegno.webhook_time(task.created_at),
      'started_at', dalsegno.webhook_time(task.started_at),
      'ended_at', dalsegno.webhook_time(task.ended_at),
      'spent_micros', task.spent_micros,
      'spent_tokens', task.spent_tokens,
      'result', left(task.result, 65536),
      -- Half a JSON value is of no use.
      'result_json', case when octet_length(task.result_json::text) <= 65536 then task.result_json end,
      'error', left(task.error, 65536),
      'truncated', coalesce(greatest(char_length(task.result), char_length(task.error), octet_length(task.result_json::text)) > 65536, false)))::text
$body$;
comment on function dalsegno.webhook_body(dalsegno.tasks) is
  'The message about a task that has ended, with at most 65536 characters of its result or error, and a structured result of at most 65536 bytes.';

------------------------------------------------------------------------------------------ erasures
create or replace function dalsegno.contents_of_campaign(of_campaign uuid) returns jsonb language sql stable as $body$
  with texts as (
    select 'campaign' as kind, '' as place, jsonb_build_array(c.name, c.brief, c.client_context) as row
      from dalsegno.campaigns as c where c.id = of_campaign
    union all
    select 'tasks', t.id::text, jsonb_build_array(t.id, t.agent, t.instance, t.prompt, t.result, t.error)
      from dalsegno.tasks as t where t.campaign_id = of_campaign
    union all
    -- Only where there are some: a campaign from before there were tags has the digests that it had.
    select 'campaign_labels', '', jsonb_build_array(c.tags, c.metadata)
      from dalsegno.campaigns as c where c.id = of_campaign and (c.tags <> '{}' or c.metadata <> '{}')
    union all
    -- Only of campaigns that were edited: one from before there were versions has the digests that it had.
    select 'campaign_versions', to_char(v.version, 'FM0000000000000000000'), jsonb_build_array(v.version, v.brief, v.client_context)
           || case when v.parameters = '{}' then '[]' else jsonb_build_array(v.parameters) end
      from dalsegno.campaign_versions as v join dalsegno.campaigns as c on c.id = v.campaign_id
     where v.campaign_id = of_campaign and c.version > 1
    union all
    select 'campaign_parameters', '', jsonb_build_array(c.parameters)
      from dalsegno.campaigns as c where c.id = of_campaign and c.parameters <> '{}'
    union all
    select 'task_parameters', p.task_id::text, jsonb_build_array(p.task_id, p.parameters)
      from dalsegno.task_parameters as p join dalsegno.tasks as t on t.id = p.task_id where t.campaign_id = of_campaign
    union all
    -- Only of tasks with a schema or a structured result: others have the digests that they had.
    select 'task_results', t.id::text, jsonb_build_array(t.id, t.result_schema, t.result_json, t.result_fault)
      from dalsegno.tasks as t
     where t.campaign_id = of_campaign and coalesce(t.result_schema::text, t.result_json::text, t.result_fault) is not null
    union all
    select 'task_labels', l.task_id::text, jsonb_build_array(l.task_id, l.tags, l.metadata)
      from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id where t.campaign_id = of_campaign
    union all
    select 'messages', m.session_id::text || to_char(m.seq, 'FM0000000000000000000'),
           jsonb_build_array(m.session_id, m.seq, m.turn, m.role, m.text, m.tool_call_id, m.tool_name, m.tool_calls)
      from dalsegno.messages as m join dalsegno.sessions as s on s.id = m.session_id where s.campaign_id = of_campaign
    union all
    select 'compactions', c.session_id::text || to_char(c.id, 'FM0000000000000000000'),
           jsonb_build_array(c.session_id, c.generation, c.summary, c.pins)
      from dalsegno.compactions as c join dalsegno.sessions as s on s.id = c.session_id where s.campaign_id = of_campaign
    union all
    select 'posts', to_char(p.seq, 'FM0000000000000000000'), jsonb_build_array(p.seq, p.id, p.sender, p.audience, p.text)
      from dalsegno.posts as p where p.campaign_id = of_campaign
    union all
    select 'feed', to_char(f.id, 'FM0000000000000000000'), jsonb_build_array(f.id, f.kind, f.data)
      from dalsegno.feed as f where f.campaign_id = of_campaign
    union all
    select 'blackboard_changes', to_char(b.version, 'FM0000000000000000000'), jsonb_build_array(b.version, b.actor, b.agent, b.patch, b.document)
      from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign
    union all
    select 'memory_items', i.id::text, jsonb_build_array(i.id, i.kind, i.owner, i.name, i.version, i.title, i.body)
      from dalsegno.memory_items as i where i.campaign_id = of_campaign
    union all
    select 'memory_versions', v.item_id::text || to_char(v.version, 'FM0000000000000000000'), jsonb_build_array(v.item_id, v.version, v.title, v.body)
      from dalsegno.memory_versions as v where v.campaign_id = of_campaign
    union all
    select 'reruns', r.session_id::text || to_char(r.turn, 'FM0000000000') || to_char(r.number, 'FM0000000000'),
           jsonb_build_array(r.session_id, r.turn, r.number, r.agent_file, r.answer, r.tool_calls, r.error)
      from dalsegno.reruns as r join dalsegno.sessions as s on s.id = r.session_id where s.campaign_id = of_campaign
    union all
    select 'facts', f.id::text, jsonb_build_array(f.id, f.user_name, f.attribute, f.text)
      from dalsegno.facts as f where f.campaign_id = of_campaign
  ), kinds as (
    select kind, count(*) as n,
           sha256(string_agg(sha256(convert_to(row::text, 'UTF8')), ''::bytea order by place collate "C")) as digest
      from texts group by kind
  )
  select coalesce(jsonb_object_agg(kind, jsonb_build_object('rows', n, 'sha256', encode(digest, 'hex'))), '{}') from kinds
$body$;

create or replace function dalsegno.left_of_campaign(of_campaign uuid) returns text[] language sql stable as $body$
  select array(
    select l.kind from (values
      ('sessions', exists (select from dalsegno.sessions as s where s.campaign_id = of_campaign)),
      ('posts', exists (select from dalsegno.posts as p where p.campaign_id = of_campaign)),
      ('feed', exists (select from dalsegno.feed as f where f.campaign_id = of_campaign)),
      ('tasks', exists (select from dalsegno.tasks as t
                         where t.campaign_id = of_campaign
                           and (t.prompt <> '(erased)' or t.result <> '(erased)' or t.error <> '(erased)' or t.cancelled_because is not null))),
      ('task_results', exists (select from dalsegno.tasks as t
                                where t.campaign_id = of_campaign
                                  and coalesce(t.result_schema::text, t.result_json::text, t.result_fault, t.step_fields::text) is not null)),
      ('task_labels', exists (select from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id
                               where t.campaign_id = of_campaign)),
      ('task_parameters', exists (select from dalsegno.task_parameters as p join dalsegno.tasks as t on t.id = p.task_id
                                   where t.campaign_id = of_campaign)),
      ('blackboard_changes', exists (select from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign)),
      ('memory_items', exists (select from dalsegno.memory_items as i where i.campaign_id = of_campaign)),
      ('memory_versions', exists (select from dalsegno.memory_versions as v where v.campaign_id = of_campaign)),
      ('facts', exists (select from dalsegno.facts as f where f.campaign_id = of_campaign))
    ) as l (kind, is_left) where l.is_left)
$body$;
