-- Webhooks: subscribers that receive a message when a task ends, and the messages.
--
-- Every statement that ends a task sets its ended_at, so a trigger on that column writes the deliveries and their jobs: in the
-- transaction of the end, and without a round trip. Without webhooks an end costs one look into an empty table.
--
-- Race: a webhook is removed while a task ends. The end locks the webhook's row against removal before it writes the delivery, or
-- waits for the removal and finds no webhook.

create table dalsegno.webhooks (
  id uuid not null constraint webhooks_pkey primary key,
  campaign_id uuid constraint webhooks_campaign references dalsegno.campaigns (id),
  created_at timestamptz not null default now(),
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_because text,
  url text not null constraint webhooks_url_length check (char_length(url) between 1 and 2000),
  kinds text[] not null
    constraint webhooks_kinds_known check (kinds <@ array['task.done', 'task.failed', 'task.cancelled'] and cardinality(kinds) > 0),
  constraint webhooks_disabled_complete check ((disabled_at is null) = (disabled_because is null))
);
comment on table dalsegno.webhooks is 'A subscriber: an address that receives a message when tasks end.';
comment on column dalsegno.webhooks.campaign_id is 'Only the tasks of this campaign. NULL: those of all.';
comment on column dalsegno.webhooks.failing_since is
  'Since when no delivery has succeeded although some were tried. NULL: the last one did.';
comment on column dalsegno.webhooks.disabled_at is
  'Since when nothing is sent. Ends of tasks from then on are stored as held, and can be replayed.';
comment on column dalsegno.webhooks.disabled_because is 'The reason and the author, in words.';
comment on column dalsegno.webhooks.kinds is 'The kinds of ends that it subscribes to.';

-- A table of its own: an error of Postgres about a row of webhooks prints that row.
create table dalsegno.webhook_secrets (
  id bigint generated always as identity constraint webhook_secrets_pkey primary key,
  webhook_id uuid not null constraint webhook_secrets_webhook references dalsegno.webhooks (id) on delete cascade,
  created_at timestamptz not null default now(),
  valid_until timestamptz,
  secret text not null
);
comment on table dalsegno.webhook_secrets is 'Keys that sign deliveries: two at once while a webhook changes from one to the next.';
comment on column dalsegno.webhook_secrets.valid_until is 'Until when it signs beside its successor. NULL: the current secret.';
comment on column dalsegno.webhook_secrets.secret is
  'In the form of the specification (whsec_...), readable, because it has to sign. A reader of this table can sign as this service.';

create index webhook_secrets_by_webhook on dalsegno.webhook_secrets (webhook_id);

create table dalsegno.webhook_deliveries (
  id uuid not null constraint webhook_deliveries_pkey primary key,
  webhook_id uuid not null constraint webhook_deliveries_webhook references dalsegno.webhooks (id) on delete cascade,
  task_id uuid constraint webhook_deliveries_task references dalsegno.tasks (id) on delete cascade,
  job_id bigint,
  created_at timestamptz not null,
  next_at timestamptz,
  ended_at timestamptz,
  attempts integer not null default 0,
  last_status smallint,
  kind text not null
    constraint webhook_deliveries_kind_known check (kind in ('task.done', 'task.failed', 'task.cancelled', 'webhook.test')),
  state text not null constraint webhook_deliveries_state_known check (state in ('waiting', 'delivered', 'failed', 'held')),
  last_error text,
  body text not null,
  constraint webhook_deliveries_end_complete check (
    (state in ('delivered', 'failed')) = (ended_at is not null)
    and (state = 'waiting' or next_at is null)
    and (state <> 'waiting' or job_id is not null)
    and attempts >= 0)
) with (fillfactor = 85);
comment on table dalsegno.webhook_deliveries is
  'One message to one webhook about one end of a task. Written in the transaction that ends the task.';
comment on column dalsegno.webhook_deliveries.id is
  'Sent as webhook-id, the same in every attempt and replay: the receiver tells repetitions by it.';
comment on column dalsegno.webhook_deliveries.task_id is 'NULL: sent by hand, to try the webhook.';
comment on column dalsegno.webhook_deliveries.job_id is
  'The job that sends it. A replay names another one, and the one before ends without sending.';
comment on column dalsegno.webhook_deliveries.created_at is 'When the task ended.';
comment on column dalsegno.webhook_deliveries.next_at is 'When the next attempt is due. NULL: at once, or none is.';
comment on column dalsegno.webhook_deliveries.attempts is 'Attempts that had an outcome, since it was last put on the queue.';
comment on column dalsegno.webhook_deliveries.state is
  'waiting for its next attempt; delivered; failed: given up; held: its webhook is disabled.';
comment on column dalsegno.webhook_deliveries.body is 'The bytes that are signed and sent.';

create index webhook_deliveries_by_webhook on dalsegno.webhook_deliveries (webhook_id, id desc);
create index webhook_deliveries_by_task on dalsegno.webhook_deliveries (task_id);
create index webhook_deliveries_by_age on dalsegno.webhook_deliveries (created_at);

------------------------------------------------------------------------------------------- messages
create function dalsegno.webhook_time(at timestamptz) returns text language sql stable parallel safe as $body$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$body$;
comment on function dalsegno.webhook_time(timestamptz) is 'RFC 3339, independent of the settings of the connection.';

create function dalsegno.webhook_body(task dalsegno.tasks) returns text language sql stable as $body$
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
      'error', left(task.error, 65536),
      'truncated', coalesce(char_length(coalesce(task.result, task.error)) > 65536, false)))::text
$body$;
comment on function dalsegno.webhook_body(dalsegno.tasks) is
  'The message about a task that has ended, with at most 65536 characters of its result or error.';

--------------------------------------------------------------------------------- writing deliveries
-- The trigger puts one job on the queue per task and webhook. A transaction that ends many tasks in one statement sets
-- dalsegno.tell_together, and has all deliveries written at once by tell_webhooks_of.

create function dalsegno.tell_webhooks() returns trigger language plpgsql as $body$
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
comment on function dalsegno.tell_webhooks() is 'Writes one delivery, and its job, for each webhook that subscribes to this end.';

create trigger tasks_tell_webhooks after update of ended_at on dalsegno.tasks
  for each row when (old.ended_at is null and new.ended_at is not null) execute function dalsegno.tell_webhooks();

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
