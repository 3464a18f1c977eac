-- Idempotency keys of tasks are stored in one form: that of their caller within its campaign. The form of earlier versions, 'task:<key>', was one
-- name for all callers. Two of them that used the same text waited for each other as long as a transaction of one was open.

insert into dalsegno.idempotency_keys (key, job_id, fingerprint, created_at)
select dalsegno.task_key(t.campaign_id, dalsegno.caller_of(t.added_by), substr(o.key, 6)), o.job_id, o.fingerprint, o.created_at
  from dalsegno.idempotency_keys as o
  join dalsegno.tasks as t on coalesce(t.first_job_id, t.job_id) = o.job_id
 where starts_with(o.key, 'task:')
on conflict on constraint idempotency_keys_pkey do nothing;
delete from dalsegno.idempotency_keys as o
 where starts_with(o.key, 'task:') and exists (select from dalsegno.tasks as t where coalesce(t.first_job_id, t.job_id) = o.job_id);

-- Called by versions that came before this migration.
create or replace function dalsegno.adopt_task_keys(campaign_id uuid, caller text, keys text[])
  returns table (key text, stored text) language sql stable as $body$
  select k.key, dalsegno.task_key(adopt_task_keys.campaign_id, adopt_task_keys.caller, k.key)
    from (select distinct u.key from unnest(keys) as u (key)) as k
$body$;
comment on function dalsegno.adopt_task_keys(uuid, text, text[]) is
  'The idempotency keys of the jobs of tasks, by the keys that a caller chose. For versions before 20261213201000.';

create or replace function dalsegno.show_task_keys(campaign_id uuid, caller text, keys text[])
  returns void language sql immutable as $body$ select null::void $body$;
comment on function dalsegno.show_task_keys(uuid, text, text[]) is 'Does nothing. For versions before 20261213201000.';

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
end
$body$;
