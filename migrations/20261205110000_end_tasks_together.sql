-- Ends of many tasks in one transaction are told to webhooks together.
--
-- One call of the trigger for each task puts one job on the queue for each webhook. Whoever ends many tasks in one statement says so,
-- and has all deliveries written at once behind it, in the same transaction. An older binary does not say so.
create or replace function dalsegno.tell_webhooks() returns trigger language plpgsql as $body$
declare
  webhook record;
  delivery_id uuid;
  job_id bigint;
begin
  if current_setting('dalsegno.tell_together', true) = 'on' then
    return null;
  end if;
  for webhook in
    select w.id, w.disabled_at is not null as is_disabled
      from dalsegno.webhooks as w
     where 'task.' || new.state = any (w.kinds) and (w.campaign_id is null or w.campaign_id = new.campaign_id)
     order by w.id
       for key share
  loop
    delivery_id := dalsegno.time_ordered_uuid(new.ended_at);
    job_id := null;
    if not webhook.is_disabled then
      -- Behind the service's own upkeep, and in turns with the other webhooks: a receiver that is slow delays its own news.
      select e.job_id into job_id
        from dalsegno.enqueue(kind => 'deliver_webhook', payload => jsonb_build_object('delivery_id', delivery_id), queue => 'upkeep',
                              group_key => webhook.id::text, priority => 150, max_attempts => 100) as e;
    end if;
    insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, job_id, created_at, kind, state, body)
    values (delivery_id, webhook.id, new.id, job_id, new.ended_at, 'task.' || new.state,
            case when webhook.is_disabled then 'held' else 'waiting' end, dalsegno.webhook_body(new));
  end loop;
  return null;
end
$body$;

create function dalsegno.tell_webhooks_of(ended uuid[]) returns bigint language plpgsql as $body$
#variable_conflict use_column
declare
  told bigint;
begin
  perform from dalsegno.webhooks as w order by w.id for key share;
  if not found then
    return 0;
  end if;
  with wanted as materialized (
    select dalsegno.time_ordered_uuid(t.ended_at) as id, w.id as webhook_id, t.id as task_id, w.disabled_at is not null as is_disabled,
           row_number() over (partition by w.disabled_at is not null order by t.id, w.id) as ord
      from dalsegno.tasks as t
      join dalsegno.webhooks as w on 'task.' || t.state = any (w.kinds) and (w.campaign_id is null or w.campaign_id = t.campaign_id)
     where t.id = any (ended) and t.ended_at is not null
  ), enqueued as materialized (
    -- As for a single task: behind the service's own upkeep, and in turns with the other webhooks.
    select e.ord, e.job_id
      from dalsegno.enqueue_many(coalesce(
             (select jsonb_agg(jsonb_build_object('kind', 'deliver_webhook', 'payload', jsonb_build_object('delivery_id', w.id),
                                                  'queue', 'upkeep', 'group_key', w.webhook_id::text, 'priority', 150,
                                                  'max_attempts', 100) order by w.ord)
                from wanted as w where not w.is_disabled), '[]')) as e
  ), written as (
    insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, job_id, created_at, kind, state, body)
    select w.id, w.webhook_id, w.task_id, e.job_id, t.ended_at, 'task.' || t.state,
           case when w.is_disabled then 'held' else 'waiting' end, dalsegno.webhook_body(t)
      from wanted as w join dalsegno.tasks as t on t.id = w.task_id
      left join enqueued as e on e.ord = w.ord and not w.is_disabled
    returning 1
  )
  select count(*) into told from written;
  return told;
end
$body$;
comment on function dalsegno.tell_webhooks_of(uuid[]) is
  'Writes what the trigger writes for each of these tasks, which were ended with dalsegno.tell_together on: their deliveries and jobs.';

-- How far an erasure has come, for whoever asks meanwhile.
alter table dalsegno.erasures add column step text;
comment on column dalsegno.erasures.step is 'What is done now: cancel, then what is removed. NULL: it has not begun, has ended, or an older worker does it.';
