-- One function behind all ways to add a task: HTTP, the command line and schedules call it as dalsegno.add_task does.
--
-- A reference to the campaign was checked by locking its row, which all who add to it then shared: with sixteen at once that was a
-- fifth of the cost. The campaign is looked at anyway, and stays: an erasure empties it, and nothing removes it. What the lock of the
-- row was good for beside that, that an erasure waits for whoever is adding, is a lock without a row.

set local lock_timeout = '10s';

create function dalsegno.keep_campaigns() returns trigger language plpgsql as $body$
begin
  raise foreign_key_violation using
    message = format('campaign %s stays: its tasks, its sessions and its bill name it', old.id),
    hint = '`dalsegno campaign erase` removes what was said in it.';
end
$body$;
comment on function dalsegno.keep_campaigns() is 'No campaign is removed. Tasks name one without a key, because a key would lock its row.';
create trigger campaigns_stay before delete on dalsegno.campaigns
  for each row execute function dalsegno.keep_campaigns();
alter table dalsegno.tasks drop constraint tasks_campaign;
comment on column dalsegno.tasks.campaign_id is 'Its campaign, which is looked at when the task is added, and never removed.';

create function dalsegno.campaign_lock(campaign_id uuid) returns bigint language sql immutable parallel safe as $body$
  select uuid_hash_extended(campaign_id, 0)
$body$;
comment on function dalsegno.campaign_lock(uuid) is
  'The number of an advisory lock: shared by transactions that add tasks to the campaign, taken alone by whoever waits for their ends.';

create or replace function dalsegno.check_campaign_takes_tasks(campaign_id uuid) returns void language plpgsql volatile as $body$
#variable_conflict use_variable
declare
  found_ record;
  unit text;
  top bigint;
  spent bigint;
begin
  -- Before the look, which is a statement of its own: whoever closes the campaign and waits for this lock is seen, or sees the task.
  perform pg_advisory_xact_lock_shared(dalsegno.campaign_lock(campaign_id));
  select c.status, b.limit_micros, b.limit_tokens, b.spent_micros, b.spent_tokens into found_
    from dalsegno.campaigns as c left join dalsegno.campaign_budgets as b on b.campaign_id = c.id
   where c.id = campaign_id;
  if found_.status is null then
    raise exception using errcode = 'DS404', constraint = 'campaign_exists',
      message = format('there is no campaign %s', coalesce(campaign_id::text, 'NULL')), hint = '`dalsegno campaign ls` lists them.';
  elsif found_.status = 'closed' then
    raise exception using errcode = 'DS409', constraint = 'campaign_is_open',
      message = format('campaign %s is closed and takes no more tasks', campaign_id),
      hint = 'Create another one: `dalsegno campaign create`.';
  elsif found_.limit_micros is null and found_.limit_tokens is null then
    return;
  end if;
  -- What nothing was set aside for is spent beside the budget's own row.
  select u.unit, u.top, u.spent into unit, top, spent
    from (select coalesce(sum(c.spent_micros), 0) + found_.spent_micros as micros,
                 coalesce(sum(c.spent_tokens), 0) + found_.spent_tokens as tokens
            from dalsegno.campaign_spending as c where c.campaign_id = campaign_id) as s,
         lateral (values (1, 'money', found_.limit_micros, s.micros), (2, 'tokens', found_.limit_tokens, s.tokens)) as u (place, unit, top, spent)
   where u.spent + 1 > u.top order by u.place limit 1;
  if found then
    raise exception using errcode = 'DS409', constraint = 'campaign_has_budget',
      message = format('the budget of campaign %s is used up', campaign_id),
      detail = jsonb_build_object('unit', unit, 'limit', top, 'spent', spent)::text,
      hint = 'Raise the limit with `dalsegno campaign budget`.';
  end if;
end
$body$;

comment on function dalsegno.check_campaign_takes_tasks(uuid) is
$comment$Raises DS404 (no such campaign) or DS409 (it is closed, or its budget is used up); the name of the constraint says which, and the
detail of a budget has its figures as JSON. No lock on the rows: the turn decides. Until the end of the transaction an erasure of the
campaign waits.$comment$;

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
begin
  task_id := id;
  select e.job_id, e.created into job_id, created
    from dalsegno.enqueue(
      kind => kind,
      payload => jsonb_build_object('asked', asked),
      queue => queue,
      lane => campaign_id || '/' || agent || '/' || instance,
      group_key => campaign_id::text,
      priority => priority,
      run_at => run_at,
      max_attempts => max_attempts,
      -- Other kinds of jobs must not meet the keys that callers choose for tasks.
      idempotency_key => 'task:' || idempotency_key,
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
                                added_by, traceparent)
    values (id, campaign_id, job_id, at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, added_by, traceparent)
  )
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (at, campaign_id, id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
end
$body$;
comment on function dalsegno.store_task(uuid, timestamptz, uuid, text, text, text, text, bigint, bigint, text, integer, timestamptz, text,
  text, text, integer, text, text) is
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

create or replace function dalsegno.add_task(
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
      asked => dalsegno.fingerprint_of_task(
        campaign_id::text, agent, instance, prompt,
        initcap(session_mode) || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
                              || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5) as s;
end
$body$;
