-- A task that waits for others, from the transaction of another system: dalsegno.add_task with one argument more.
--
-- A function beside the one that is there, and not in its place: others may have granted it, or named it in views and functions.

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
  job record;
  waits boolean := coalesce(cardinality(depends_on), 0) > 0;
begin
  perform dalsegno.check_new_task(agent, prompt, instance, session_mode, budget_micros, budget_tokens);
  if idempotency_key = '' then
    raise exception using errcode = 'DS400', message = 'cannot add a task: idempotency_key is the empty string', hint = 'Pass NULL for none.';
  elsif parent_id is not null and not exists (select from dalsegno.tasks as t where t.id = parent_id and t.campaign_id = add_task.campaign_id) then
    raise exception using errcode = 'DS404', message = format('there is no task %s in campaign %s that could hand this one out', parent_id, campaign_id),
      hint = '`dalsegno task ls` lists them.';
  end if;
  task_id := dalsegno.time_ordered_uuid(moment);
  select e.job_id, e.created into job
    from dalsegno.enqueue(
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      payload => jsonb_build_object('asked', dalsegno.fingerprint_of_task(variadic array[
        campaign_id::text, agent, instance, prompt,
        initcap(session_mode) || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
                              || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
        || case when waits or parent_id is not null
                then array['after ' || coalesce(array_to_string(depends_on, ','), '') || ' ' || on_failure || coalesce(' parent ' || parent_id, '')]
                else '{}' end)),
      queue => 'turns',
      lane => campaign_id || '/' || agent || '/' || instance,
      group_key => campaign_id::text,
      priority => priority,
      run_at => case when waits then dalsegno.never() else run_at end,
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
  perform dalsegno.check_campaign_takes_tasks(campaign_id);
  insert into dalsegno.tasks (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, parent_id)
  values (task_id, campaign_id, job.job_id, moment, budget_micros, budget_tokens, session_mode, agent, instance, prompt, parent_id);
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data)
  values (moment, campaign_id, task_id, 'task.queued', jsonb_build_object('agent', agent, 'instance', instance));
  if waits then
    perform dalsegno.await_signal(array[job.job_id]);
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
parent_id        the task that hands this one out: whoever cancels that one cancels this one

Raises DS404 also for a task that is not there, or is of another campaign.$comment$;
