-- What a task was asked for beside its words stays with the task: a retry gives it a new job, and the old one is gone with its options.
-- And one place in SQL for the digest that an idempotency key compares.

alter table dalsegno.tasks
  add column priority smallint,
  add column run_at timestamptz;
comment on column dalsegno.tasks.priority is
  'As it was asked for; 0 is the most urgent. NULL: an older version added the task, and its job alone knows.';
comment on column dalsegno.tasks.run_at is 'Not before this moment, as it was asked for. NULL: at once.';

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
                                added_by, traceparent, priority, run_at)
    values (id, campaign_id, job_id, at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, added_by, traceparent,
            priority, nullif(run_at, dalsegno.never()))
  )
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (at, campaign_id, id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
end
$body$;

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
      asked => dalsegno.digest_of_task(campaign_id, agent, instance, prompt, session_mode, budget_micros, budget_tokens),
      kind => 'run_turn',
      queue => 'turns',
      max_attempts => 5) as s;
end
$body$;

create or replace function dalsegno.add_task(
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

-- Letters that older versions left behind: their tasks have another job by now, or did not end as failed.
with stale as (
  delete from dalsegno.dead_jobs as d using dalsegno.tasks as t
   where d.kind in ('run_turn', 'run_joined_turn')
     and t.id = case when d.headers ->> 'task' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (d.headers ->> 'task')::uuid end
     and (t.job_id <> d.id or t.state in ('done', 'cancelled'))
  returning d.queue, d.kind
)
insert into dalsegno.transition_deltas (queue, kind, event, from_state, to_state, n)
select s.queue, s.kind, 'purge', 'dead', 'purged', count(*) from stale as s group by s.queue, s.kind;
