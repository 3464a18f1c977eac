-- Tasks in SQL with a time for their answers and with attachments.
--
-- Adds: the arguments within_secs and attachments of add_task, both of digest_of_task. Attachments are references to stored files of the
-- campaign, with the rules of the service. Limits of files are settings of the service, which the database does not know: it has its own.

create function dalsegno.check_within(within_secs integer) returns void language plpgsql immutable as $body$
begin
  if within_secs not between 3600 and 604800 then
    raise exception using errcode = 'DS400', message = format('cannot add a task: the answer may not take %s s', within_secs),
      hint = 'Give it one hour (3600) to seven days (604800), or pass NULL.';
  end if;
end
$body$;
comment on function dalsegno.check_within(integer) is 'Raises DS400 for a time for an answer that is out of range. NULL: none.';

create function dalsegno.read_attachments(attachments jsonb) returns jsonb language plpgsql stable as $body$
declare
  max_files integer := coalesce(nullif(current_setting('dalsegno.max_attachments', true), '')::integer, 20);
  example constant text := 'Give an array such as [{"task": "019aa2f1-0000-7000-8000-000000000001", "file": "report.pdf"}]; "name" may be set, too.';
  files jsonb := '[]';
  names text[] := '{}';
  one record;
  name text;
begin
  if attachments is null or attachments = '[]' then
    return null;
  elsif jsonb_typeof(attachments) <> 'array' then
    raise exception using errcode = 'DS400', message = 'cannot add a task: attachments is not a JSON array', hint = example;
  elsif jsonb_array_length(attachments) > max_files then
    raise exception using errcode = 'DS400',
      message = format('cannot add a task: it has %s attachments, and at most %s are allowed', jsonb_array_length(attachments), max_files),
      hint = 'Leave some out, or raise dalsegno.max_attachments.';
  end if;
  for one in select e.value, e.place from jsonb_array_elements(attachments) with ordinality as e (value, place) order by e.place loop
    if jsonb_typeof(one.value) <> 'object'
       or jsonb_typeof(one.value -> 'task') is distinct from 'string' or jsonb_typeof(one.value -> 'file') is distinct from 'string'
       or coalesce(jsonb_typeof(one.value -> 'name'), 'null') not in ('string', 'null')
       or one.value - '{task,file,name}'::text[] <> '{}'
       or one.value ->> 'task' !~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' then
      raise exception using errcode = 'DS400', message = format('cannot add a task: attachment %s does not name a file of a task', one.place), hint = example;
    end if;
    name := coalesce(one.value ->> 'name', regexp_replace(one.value ->> 'file', '^.*/', ''));
    -- As the service: no folders, no controls, and no marks with which a name can pretend to have another ending.
    if name in ('', '.', '..') or octet_length(name) > 255
       or name ~ '[/\\\u0001-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]' then
      raise exception using errcode = 'DS400', message = format('cannot add a task: attachment %s has a name that cannot be used', one.place),
        hint = 'Give it a "name" of 1 to 255 bytes without folders, backslashes and control characters.';
    elsif name = any(names) then
      raise exception using errcode = 'DS400', message = format('cannot add a task: two attachments are named `%s`', name),
        hint = 'Give one of them another "name".';
    end if;
    names := names || name;
    files := files || jsonb_build_array(jsonb_build_array(name, lower(one.value ->> 'task'), one.value ->> 'file'));
  end loop;
  return files;
end
$body$;
comment on function dalsegno.read_attachments(jsonb) is
  'Checks attachments of add_task without a look at the files, and returns [name, task, file] for each. NULL: there are none.';

create function dalsegno.attach_files(of_campaign uuid, to_task uuid, files jsonb, moment timestamptz) returns void language plpgsql as $body$
declare
  max_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_attachment_bytes', true), '')::bigint, 10000000);
  max_all_bytes bigint := coalesce(nullif(current_setting('dalsegno.max_attachments_bytes', true), '')::bigint, 25000000);
  n_all_bytes bigint := 0;
  one record;
  found_file record;
begin
  for one in
    select e.place, e.value ->> 0 as name, (e.value ->> 1)::uuid as task_id, e.value ->> 2 as file
      from jsonb_array_elements(files) with ordinality as e (value, place) order by e.place
  loop
    -- Locked against a removal.
    select f.sha256, f.problem, c.media_type, c.n_bytes into found_file
      from (select 1 as place, o.task_id, o.sha256, o.problem from dalsegno.task_files as o where o.task_id = one.task_id and o.name = one.file
            union all
            select 2, a.task_id, a.sha256, null from dalsegno.task_attachments as a where a.task_id = one.task_id and a.name = one.file) as f
      join dalsegno.tasks as t on t.id = f.task_id and t.campaign_id = of_campaign
      left join lateral (select l.media_type, l.n_bytes from dalsegno.file_contents as l where l.sha256 = f.sha256 for key share) as c on true
     order by f.place limit 1;
    if found_file.problem is not null then
      raise exception using errcode = 'DS400', message = format('cannot add a task: the file `%s` of task %s is not stored: %s', one.file, one.task_id, found_file.problem),
        hint = 'Leave it out.';
    elsif found_file.media_type is null then
      raise exception using errcode = 'DS404', message = format('cannot add a task: task %s of this campaign has no file `%s` to attach', one.task_id, one.file),
        hint = format('`dalsegno task files %s` lists its files.', one.task_id);
    elsif found_file.media_type not in ('image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'text/plain') then
      raise exception using errcode = 'DS400', message = format('cannot add a task: attachment `%s` seems to be %s, which is not accepted', one.name, found_file.media_type),
        hint = 'Give PNG, JPEG, GIF and WebP images, PDF, and text in UTF-8.';
    end if;
    n_all_bytes := n_all_bytes + found_file.n_bytes;
    if found_file.n_bytes > max_bytes then
      raise exception using errcode = 'DS413', message = format('cannot add a task: attachment `%s` has %s bytes, and at most %s are allowed', one.name, found_file.n_bytes, max_bytes),
        hint = 'Leave it out, or raise dalsegno.max_attachment_bytes.';
    elsif n_all_bytes > max_all_bytes then
      raise exception using errcode = 'DS413', message = format('cannot add a task: with attachment `%s` it has %s bytes of attachments, and at most %s are allowed', one.name, n_all_bytes, max_all_bytes),
        hint = 'Leave some out, or raise dalsegno.max_attachments_bytes.';
    end if;
    insert into dalsegno.task_attachments (attached_at, position, task_id, sha256, name)
      values (moment, one.place, to_task, found_file.sha256, one.name);
  end loop;
end
$body$;
comment on function dalsegno.attach_files(uuid, uuid, jsonb, timestamptz) is
  'Gives a new task the files that read_attachments returned. Raises DS404 for a file that no task of the campaign has.';

-- A function gets more arguments as another one in its place. Calls that leave them out stay as they are.
drop function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb);
drop function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb);
drop function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text, text);

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
    result_schema text default null,
    attachments text default null,
    within text default null)
  returns text language sql stable parallel safe as $body$
  select dalsegno.fingerprint_of_task(variadic array[
           campaign_id::text, agent, instance, prompt,
           case session_mode when 'continue' then 'Continue' when 'fresh' then 'Fresh' when 'none' then 'None' end
             || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
             || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
         || case when links is null then '{}' else array[links] end
         || case when flows is null then '{}' else array[flows] end
         || case when result_schema is null then '{}' else array[result_schema] end
         || case when attachments is null then '{}' else array[attachments] end
         || case when within is null then '{}' else array[within] end)
$body$;
comment on function dalsegno.digest_of_task(uuid, text, text, text, text, bigint, bigint, text, text, text, text, text) is
$comment$The digest of a request, which an idempotency key compares: SHA-256 in hexadecimal over the parts of the request, each in UTF-8 with its
length in bytes before it (eight bytes, big-endian).

The parts, in this order:

campaign         in lower case with hyphens
agent, instance, prompt  as they are
limits           session mode, money and tokens with one blank between: Continue, Fresh or None; each limit None or Some(<decimal number>)
links            for a task that waits or has a parent: "after <ids, with commas> <run or cancel>", then " parent <id>"
node             over HTTP and the command line only: "node <name>"
flows            with flow_templates: "flows <names, with commas>"
schema           with result_schema: "result_schema <dalsegno.canonical_json>"
attachments      with attachments: "attachments <dalsegno.canonical_json>" of [name, task, file] for each
within           with within_secs: "within <seconds>"

The form is the same in every version.$comment$;

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
    within_secs integer default null,
    attachments jsonb default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
  files jsonb;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
  perform dalsegno.check_flow_templates(flow_templates);
  perform dalsegno.check_result_schema(result_schema);
  perform dalsegno.check_within(within_secs);
  files := dalsegno.read_attachments(attachments);
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
        flows => 'flows ' || array_to_string(flow_templates, ','), result_schema => 'result_schema ' || dalsegno.canonical_json(result_schema),
        attachments => 'attachments ' || dalsegno.canonical_json(files), within => 'within ' || within_secs),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  if created and (flow_templates is not null or result_schema is not null or within_secs is not null) then
    update dalsegno.tasks as t
       set flow_templates = add_task.flow_templates, result_schema = add_task.result_schema, within_secs = add_task.within_secs
     where t.id = add_task.task_id;
  end if;
  if created and files is not null then
    perform dalsegno.attach_files(campaign_id, task_id, files, moment);
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb, integer, jsonb) is
$comment$Adds a task for an agent of a campaign, in the caller's transaction: the task and its job exist exactly if it commits.

campaign_id      an open campaign
agent            the name of an agent file. The database does not know the files: a task for an unknown agent is accepted and fails with
                 that reason
prompt           the request; at most dalsegno.max_prompt_bytes (262144)
instance         a numbered or named copy of the agent; each has a conversation of its own
session_mode     continue: the conversation continues; fresh: it begins without a history; none: a session that no later task continues.
                 The session mode of the agent file does not apply
budget_micros, budget_tokens  limits of the task: millionths of the currency, tokens. NULL: no limit
idempotency_key  at most 195 characters. The same key with the same request returns the same task (created = false); another request
                 under the key raises DS409. SQL, the command line and HTTP without an API key share their keys
priority         0 is the most urgent, 100 the default
run_at           the earliest start. NULL: now
tags             at most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters. No prompt contains them
metadata         a JSON object of at most 8192 bytes. No prompt contains it
flow_templates   the flow templates that the agent may start in this task; an empty array: none. NULL: those of the agent file. Names
                 without a file are ignored
result_schema    the JSON Schema that the answer has to match; the task then has the answer in result_json, too. NULL: that of the agent
                 file
within_secs      seconds that the answer may take, 3600 to 604800, from now, from run_at or from the end of the tasks in depends_on. A
                 provider with a batch API is then asked at its lower price. NULL: no time is given
attachments      files that the agent gets with the prompt: a JSON array of {"task": ID, "file": NAME} with files of tasks of this
                 campaign, output files or attachments, and optionally "name". Their number and bytes are limited by
                 dalsegno.max_attachments (20), dalsegno.max_attachment_bytes (10000000) and dalsegno.max_attachments_bytes (25000000)

Returns the id of the task, and in created whether this call added it.

Raises DS400 for a wrong argument, DS404 for an unknown campaign or file, DS409 for a closed campaign, for a budget that is used up and
lets tasks fail, and for a key of another request, DS413 for a prompt or files that are too long. Each has a hint.

Locks the lane of the conversation until the caller's transaction ends, so that tasks run in the order of commits: keep the transaction
short, and call the function near its end.$comment$;

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
    within_secs integer default null,
    attachments jsonb default null,
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
  files jsonb;
  waits boolean := coalesce(cardinality(depends_on), 0) > 0;
  stored record;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
  perform dalsegno.check_flow_templates(flow_templates);
  perform dalsegno.check_result_schema(result_schema);
  perform dalsegno.check_within(within_secs);
  files := dalsegno.read_attachments(attachments);
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
        flows => 'flows ' || array_to_string(flow_templates, ','), result_schema => 'result_schema ' || dalsegno.canonical_json(result_schema),
        attachments => 'attachments ' || dalsegno.canonical_json(files), within => 'within ' || within_secs),
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      queue => 'turns',
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
  task_id := stored.task_id;
  created := stored.created;
  if created and (parent_id is not null or flow_templates is not null or result_schema is not null or within_secs is not null or (waits and run_at is not null)) then
    update dalsegno.tasks as t
       set parent_id = add_task.parent_id, run_at = add_task.run_at, flow_templates = add_task.flow_templates,
           result_schema = add_task.result_schema, within_secs = add_task.within_secs
     where t.id = add_task.task_id;
  end if;
  if created and files is not null then
    perform dalsegno.attach_files(campaign_id, task_id, files, moment);
  end if;
  if created and waits then
    perform dalsegno.await_signal(array[stored.job_id]);
    perform dalsegno.wait_for_tasks(task_id, depends_on, on_failure, run_at);
  end if;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb, text[], jsonb, integer, jsonb) is
$comment$Adds a task that waits for others. The arguments that are not listed here have the meaning that they have without depends_on.

depends_on       at most 1000 tasks of the same campaign, also of this transaction. When all of them have ended, the task runs, and its agent
                 gets their results in this order. It holds no slot meanwhile, and later tasks of its conversation may run before it. An
                 empty array: it waits for nothing
on_failure       run: it runs in any case, and the agent is told of the failures; cancel: it is cancelled when one of them has failed or
                 was cancelled
parent_id        the task that adds this one as a child: cancelling the parent cancels the child

Raises DS404 also for a task that does not exist, or belongs to another campaign.$comment$;

comment on column dalsegno.tasks.within_secs is
  'Seconds that the answer may take, counted from the latest of created_at, run_at and the end of its wait for other tasks. NULL: no time is given.';
