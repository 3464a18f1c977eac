-- Tags and metadata: the caller's own words about tasks and campaigns, to find them by. They go into no prompt.
--
-- Those of tasks are in a table of their own, which no turn reads or writes: claiming, beginning and ending a task cost what they did
-- before, and so does adding one without them. No update of a task touches the index of the table.
--
-- Adds: task_labels; tags and metadata of campaigns; the arguments tags and metadata of store_task and add_task; both kinds of words
-- in what an erasure measures and removes.

create function dalsegno.are_tags(tags text[]) returns boolean language plpgsql immutable parallel safe as $body$
begin
  return cardinality(tags) <= 16 and array_position(tags, null) is null
     and not exists (select from unnest(tags) as t (tag) where t.tag !~ '^[a-z0-9][a-z0-9_.:-]{0,62}$');
end
$body$;
comment on function dalsegno.are_tags(text[]) is
  'At most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters.';

create function dalsegno.is_metadata(metadata jsonb) returns boolean language plpgsql immutable parallel safe as $body$
begin
  return jsonb_typeof(metadata) = 'object' and octet_length(metadata::text) <= 8192;
end
$body$;
comment on function dalsegno.is_metadata(jsonb) is 'An object of at most 8192 bytes, as Postgres writes it.';

create table dalsegno.task_labels (
  task_id uuid not null
    constraint task_labels_pkey primary key
    constraint task_labels_task references dalsegno.tasks (id),
  tags text[] not null default '{}' constraint task_labels_tags_form check (dalsegno.are_tags(tags)),
  metadata jsonb not null default '{}' constraint task_labels_metadata_form check (dalsegno.is_metadata(metadata)),
  constraint task_labels_not_empty check (tags <> '{}' or metadata <> '{}')
);
comment on table dalsegno.task_labels is
  'Tags and metadata of tasks that have any. Written when the task is added, removed by the erasure of its campaign.';
comment on column dalsegno.task_labels.tags is 'Short names that the caller gave the task.';
comment on column dalsegno.task_labels.metadata is 'Keys and values that the caller gave the task.';
create index task_labels_by_words on dalsegno.task_labels using gin (tags, metadata jsonb_path_ops);
comment on index dalsegno.task_labels_by_words is 'Tasks by any of their tags and of their metadata.';

alter table dalsegno.campaigns
  add column tags text[] not null default '{}' constraint campaigns_tags_form check (dalsegno.are_tags(tags)),
  add column metadata jsonb not null default '{}' constraint campaigns_metadata_form check (dalsegno.is_metadata(metadata));
comment on column dalsegno.campaigns.tags is 'Short names that the caller gave the campaign.';
comment on column dalsegno.campaigns.metadata is 'Keys and values that the caller gave the campaign.';

create function dalsegno.check_labels(tags text[], metadata jsonb) returns void language plpgsql immutable as $body$
begin
  if tags is not null and not dalsegno.are_tags(tags) then
    raise exception using errcode = 'DS400', message = 'cannot add a task: the tags do not fit',
      hint = 'Give at most 16 tags of lower-case letters, digits, - _ . and :, each at most 63 characters.';
  elsif metadata is not null and not dalsegno.is_metadata(metadata) then
    raise exception using errcode = 'DS400', message = 'cannot add a task: the metadata does not fit',
      hint = 'Give a JSON object of at most 8192 bytes.';
  end if;
end
$body$;
comment on function dalsegno.check_labels(text[], jsonb) is 'Raises DS400 for tags or metadata that do not fit. NULL: none.';

------------------------------------------------------------------------------------- adding a task
-- A function gets more arguments as another one in its place. Calls that leave them out stay as they are.
drop function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz);
drop function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz);
drop function dalsegno.store_task(uuid, timestamptz, uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text, text, text, integer, text, text);

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
    tags text[] default null,
    metadata jsonb default null,
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
  if tags <> '{}' or metadata <> '{}' then
    insert into dalsegno.task_labels (task_id, tags, metadata) values (id, coalesce(tags, '{}'), coalesce(metadata, '{}'));
  end if;
end
$body$;
comment on function dalsegno.store_task(uuid, timestamptz, uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text, text, text, integer, text, text, text[], jsonb) is
$comment$Writes a task, its job and the first event of its feed. The service's own way in, and what dalsegno.add_task calls; not for
other systems. What is asked was checked before, and asked is its fingerprint. Tags and metadata are no
part of that. Returns the task of an earlier call with the same
idempotency key (created = false); task_id is NULL where the key stands for a job that is no task's. Raises what
dalsegno.check_campaign_takes_tasks and dalsegno.enqueue do.$comment$;

create or replace function dalsegno.store_tasks(tasks jsonb)
  returns table (task_id uuid, job_id bigint, created boolean)
  language plpgsql set lock_timeout = '50ms' as $body$
begin
  return query
  select s.task_id, s.job_id, s.created
    from rows from (jsonb_to_recordset(tasks) as (id uuid, at timestamptz, campaign_id uuid, agent text, instance text, prompt text,
           session_mode text, budget_micros bigint, budget_tokens bigint, idempotency_key text, priority integer, run_at timestamptz,
           asked text, kind text, queue text, max_attempts integer, added_by text, traceparent text, tags text[],
           metadata jsonb)) with ordinality as t
   cross join lateral dalsegno.store_task(t.id, t.at, t.campaign_id, t.agent, t.instance, t.prompt, t.session_mode, t.budget_micros,
           t.budget_tokens, t.idempotency_key, t.priority, t.run_at, t.asked, t.kind, t.queue, t.max_attempts, t.added_by,
           t.traceparent, t.tags, t.metadata) as s
   order by t.ordinality;
end
$body$;

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
    out task_id uuid, out created boolean)
  language plpgsql as $body$
#variable_conflict use_variable
declare
  moment timestamptz := clock_timestamp();
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  perform dalsegno.check_labels(tags, metadata);
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
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
end
$body$;
comment on function dalsegno.add_task(uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb) is
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
      max_attempts => 5,
      tags => tags,
      metadata => metadata) as s;
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
comment on function dalsegno.add_task(uuid, text, text, uuid[], text, uuid, text, text, bigint, bigint, text, integer, timestamptz, text[], jsonb) is
$comment$As dalsegno.add_task without depends_on, whose comment says what the other arguments mean, for a task that waits for others.

depends_on       tasks of the same campaign, at most 1000, which may have been added in the same transaction. The task runs when all
                 of them have ended, and its agent is told what they came to, in this order. It holds no slot meanwhile, and tasks of
                 its conversation that are added later may run before it. An empty array: it waits for nothing
on_failure       run: it is told of failures, and runs; cancel: it is cancelled as soon as one of them has failed or was cancelled
parent_id        the task that hands this one out: cancelling that one cancels this one

Raises DS404 also for a task that is not there, or is of another campaign.$comment$;

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
      ('task_labels', exists (select from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id
                               where t.campaign_id = of_campaign)),
      ('blackboard_changes', exists (select from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign)),
      ('memory_items', exists (select from dalsegno.memory_items as i where i.campaign_id = of_campaign)),
      ('memory_versions', exists (select from dalsegno.memory_versions as v where v.campaign_id = of_campaign)),
      ('facts', exists (select from dalsegno.facts as f where f.campaign_id = of_campaign))
    ) as l (kind, is_left) where l.is_left)
$body$;

create or replace function dalsegno.end_erasure(of_campaign uuid, at timestamptz, covers bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_variable
declare
  kinds text[] := dalsegno.left_of_campaign(of_campaign);
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  if exists (select from dalsegno.campaigns as c
              where c.id = of_campaign and (c.name <> '(erased)' or c.brief <> '' or c.client_context is not null or c.tags <> '{}' or c.metadata <> '{}')) then
    kinds := kinds || 'campaign'::text;
  end if;
  if kinds <> '{}' then
    raise exception using errcode = 'DS405', message = format('campaign %s is not erased yet: %s', of_campaign, array_to_string(kinds, ', ')),
      hint = 'The worker that erases it goes on.';
  end if;
  if not dalsegno.has_owner_rights() then
    at := greatest(least(at, now() + interval '1 minute'), now() - interval '1 minute');
  end if;
  update dalsegno.erasures as e set ended_at = coalesce(e.ended_at, at), covers = greatest(e.covers, end_erasure.covers), step = null
   where e.campaign_id = of_campaign;
end
$body$;
