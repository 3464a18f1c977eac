-- dalsegno.add_task with depends_on goes through the one function behind all ways to add a task, as the one without it does.

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
      asked => dalsegno.fingerprint_of_task(variadic array[
        campaign_id::text, agent, instance, prompt,
        initcap(session_mode) || ' ' || coalesce('Some(' || budget_micros || ')', 'None')
                              || ' ' || coalesce('Some(' || budget_tokens || ')', 'None')]
        || case when waits or parent_id is not null
                then array['after ' || coalesce(array_to_string(depends_on, ','), '') || ' ' || on_failure || coalesce(' parent ' || parent_id, '')]
                else '{}' end),
      kind => case when waits then 'run_joined_turn' else 'run_turn' end,
      queue => 'turns',
      max_attempts => 5) as s;
  task_id := stored.task_id;
  created := stored.created;
  if created and parent_id is not null then
    update dalsegno.tasks as t set parent_id = add_task.parent_id where t.id = add_task.task_id;
  end if;
  if created and waits then
    perform dalsegno.await_signal(array[stored.job_id]);
    perform dalsegno.wait_for_tasks(task_id, depends_on, on_failure, run_at);
  end if;
end
$body$;
