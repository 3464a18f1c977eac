-- Budgets of agents, users and days, and warnings at soft limits.
--
-- Adds: the functions that set, list and check these budgets; soft limits of tasks. Changes: charge_budgets and settle_budgets, which
-- write a warning once per budget and period; webhooks, which may subscribe to it.

alter table dalsegno.tasks
  add column soft_micros bigint constraint tasks_soft_micros_positive check (soft_micros > 0),
  add column soft_tokens bigint constraint tasks_soft_tokens_positive check (soft_tokens > 0),
  add column warned_at timestamptz;
comment on column dalsegno.tasks.soft_micros is 'Spending of the task at which a warning is written, in micro-units. NULL: none.';
comment on column dalsegno.tasks.warned_at is 'When the warning was written. NULL: not yet.';

alter table dalsegno.webhooks drop constraint webhooks_kinds_known;
alter table dalsegno.webhooks add constraint webhooks_kinds_known
  check (kinds <@ array['task.done', 'task.failed', 'task.cancelled', 'budget.warning'] and cardinality(kinds) > 0);
alter table dalsegno.webhook_deliveries drop constraint webhook_deliveries_kind_known;
alter table dalsegno.webhook_deliveries add constraint webhook_deliveries_kind_known
  check (kind in ('task.done', 'task.failed', 'task.cancelled', 'webhook.test', 'budget.warning'));
comment on column dalsegno.webhook_deliveries.task_id is
  'The task that ended, or whose call reached a soft limit. NULL: sent by hand, to try the webhook, or for a call without a task.';

------------------------------------------------------------------------------------------- warnings
create function dalsegno.tell_webhooks_of_budget(of_campaign uuid, of_task uuid, data jsonb, moment timestamptz) returns void
  language plpgsql as $body$
declare
  webhook record;
  delivery_id uuid;
  job_id bigint;
begin
  for webhook in
    select w.id, w.disabled_at is not null as is_disabled from dalsegno.webhooks as w
     where 'budget.warning' = any (w.kinds) and (w.campaign_id is null or w.campaign_id = of_campaign)
     order by w.id for key share
  loop
    delivery_id := dalsegno.time_ordered_uuid(moment);
    job_id := null;
    if not webhook.is_disabled then
      select e.job_id into job_id
        from dalsegno.enqueue(kind => 'deliver_webhook', payload => jsonb_build_object('delivery_id', delivery_id), queue => 'upkeep',
                              group_key => webhook.id::text, priority => 150, max_attempts => 100) as e;
    end if;
    insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, job_id, created_at, kind, state, body)
    values (delivery_id, webhook.id, of_task, job_id, moment, 'budget.warning', case when webhook.is_disabled then 'held' else 'waiting' end,
            jsonb_build_object('type', 'budget.warning', 'timestamp', dalsegno.webhook_time(moment),
                               'data', data || jsonb_build_object('campaign_id', of_campaign, 'task_id', of_task))::text);
  end loop;
end
$body$;
comment on function dalsegno.tell_webhooks_of_budget(uuid, uuid, jsonb, timestamptz) is
  'Writes one delivery, and its job, for each webhook that subscribes to warnings.';

create function dalsegno.warn_of_budget(of_owner text, of_key text, of_campaign uuid, of_task uuid, moment timestamptz) returns void
  language plpgsql as $body$
declare
  held record;
  beside record;
  data jsonb;
begin
  -- The caller has locked the row.
  if of_owner = 'campaign' then
    select b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens, b.spent_micros, b.spent_tokens, null::date as period into held
      from dalsegno.campaign_budgets as b where b.campaign_id = of_key::uuid and b.warned_at is null;
    select coalesce(sum(s.spent_micros), 0) as micros, coalesce(sum(s.spent_tokens), 0) as tokens into beside
      from dalsegno.campaign_spending as s where s.campaign_id = of_key::uuid;
    held.spent_micros := held.spent_micros + beside.micros;
    held.spent_tokens := held.spent_tokens + beside.tokens;
  elsif of_owner = 'task' then
    select t.budget_micros as limit_micros, t.budget_tokens as limit_tokens, t.soft_micros, t.soft_tokens, t.spent_micros, t.spent_tokens,
           null::date as period into held
      from dalsegno.tasks as t where t.id = of_key::uuid and t.warned_at is null;
  else
    select b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens, b.spent_micros, b.spent_tokens, b.period into held
      from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key and b.warned_at is null;
  end if;
  if not (coalesce(held.spent_micros >= held.soft_micros, false) or coalesce(held.spent_tokens >= held.soft_tokens, false)) then
    return;
  end if;
  if of_owner = 'campaign' then
    update dalsegno.campaign_budgets as b set warned_at = moment where b.campaign_id = of_key::uuid;
  elsif of_owner = 'task' then
    update dalsegno.tasks as t set warned_at = moment where t.id = of_key::uuid;
  else
    update dalsegno.budgets as b set warned_at = moment where b.owner = of_owner and b.key = of_key;
  end if;
  data := jsonb_build_object('owner', of_owner, 'key', of_key, 'period', held.period,
    'spent', jsonb_build_object('micros', held.spent_micros, 'tokens', held.spent_tokens),
    'soft', jsonb_build_object('micros', held.soft_micros, 'tokens', held.soft_tokens),
    'limit', jsonb_build_object('micros', held.limit_micros, 'tokens', held.limit_tokens));
  insert into dalsegno.feed (created_at, campaign_id, task_id, kind, data) values (moment, of_campaign, of_task, 'budget.warning', data);
  perform dalsegno.tell_webhooks_of_budget(of_campaign, of_task, data, moment);
end
$body$;
comment on function dalsegno.warn_of_budget(text, text, uuid, uuid, timestamptz) is
  'Writes the warning of a budget whose spending has reached its soft limit, once per period: an event of the feed, and deliveries of '
  'webhooks. Both name the campaign and the task whose call was charged.';

create function dalsegno.warn_of_task() returns trigger language plpgsql as $body$
begin
  perform dalsegno.warn_of_budget('task', new.id::text, new.campaign_id, new.id, clock_timestamp());
  return null;
end
$body$;
comment on function dalsegno.warn_of_task() is 'Warns of the budget of a task that was charged.';

create trigger tasks_warn_of_budget after update of spent_micros, spent_tokens on dalsegno.tasks
  for each row when (new.warned_at is null and (new.spent_micros >= new.soft_micros or new.spent_tokens >= new.soft_tokens))
  execute function dalsegno.warn_of_task();

create or replace function dalsegno.charge_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
declare
  one record;
  is_set_aside boolean;
  may_warn boolean;
  touched text[][] := '{}';
begin
  for one in
    select b.id, b.owner, b.key from dalsegno.budgets as b
     where b.id = any (budget_ids) or ((micros <> 0 or tokens <> 0) and dalsegno.is_budget_of(b.owner, b.key, of_campaign, of_agent))
     order by b.id
  loop
    is_set_aside := one.id = any (budget_ids);
    perform dalsegno.lock_budget(one.owner, one.key, moment);
    update dalsegno.budgets as b
       set reserved_micros = b.reserved_micros - case when is_set_aside then freed_micros else 0 end,
           reserved_tokens = b.reserved_tokens - case when is_set_aside then freed_tokens else 0 end,
           spent_micros = b.spent_micros + micros, spent_tokens = b.spent_tokens + tokens
     where b.id = one.id
    returning b.warned_at is null and (b.soft_micros is not null or b.soft_tokens is not null) into may_warn;
    if may_warn then
      perform dalsegno.warn_of_budget(one.owner, one.key, of_campaign, of_task, moment);
    end if;
    touched := touched || array[array[one.owner, one.key]];
  end loop;
  -- After all locks of budgets.
  for at in 1 .. coalesce(array_length(touched, 1), 0) loop
    perform dalsegno.wake_for_budget(touched[at][1], touched[at][2], moment);
  end loop;
end
$body$;

create or replace function dalsegno.settle_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
declare
  may_warn boolean;
begin
  if freed_micros <> 0 or freed_tokens <> 0 then
    update dalsegno.campaign_budgets as b
       set reserved_micros = b.reserved_micros - freed_micros, reserved_tokens = b.reserved_tokens - freed_tokens,
           spent_micros = b.spent_micros + micros, spent_tokens = b.spent_tokens + tokens
     where b.campaign_id = of_campaign
    returning b.warned_at is null and (b.soft_micros is not null or b.soft_tokens is not null) into may_warn;
    if not found then
      raise exception 'campaign % has no budget', of_campaign;
    end if;
    if may_warn then
      perform dalsegno.warn_of_budget('campaign', of_campaign::text, of_campaign, of_task, moment);
    end if;
  elsif micros <> 0 or tokens <> 0 then
    insert into dalsegno.campaign_spending as s (campaign_id, shard, spent_micros, spent_tokens)
    values (of_campaign, (pg_backend_pid() & 63)::smallint, micros, tokens)
    on conflict on constraint campaign_spending_pkey do update
       set spent_micros = s.spent_micros + excluded.spent_micros, spent_tokens = s.spent_tokens + excluded.spent_tokens;
  end if;
  perform dalsegno.charge_budgets(of_campaign, of_agent, of_task, budget_ids, freed_micros, freed_tokens, micros, tokens, moment);
  if freed_micros <> 0 or freed_tokens <> 0 then
    perform dalsegno.wake_for_budget('campaign', of_campaign::text, moment);
  end if;
end
$body$;

---------------------------------------------------------------------------------- agents, users, days
create function dalsegno.budget_at(budget dalsegno.budgets, moment timestamptz) returns dalsegno.budget_amounts language sql stable as $body$
  select row (budget.owner, budget.key, d.day, budget.time_zone, (d.day + 1)::timestamp at time zone budget.time_zone, budget.on_limit,
              budget.limit_micros, budget.limit_tokens, case when d.is_over then 0 else budget.spent_micros end,
              case when d.is_over then 0 else budget.spent_tokens end, budget.reserved_micros, budget.reserved_tokens)::dalsegno.budget_amounts
    from (select greatest(budget.period, (moment at time zone budget.time_zone)::date) as day,
                 coalesce((moment at time zone budget.time_zone)::date > budget.period, false) as is_over) as d
$body$;
comment on function dalsegno.budget_at(dalsegno.budgets, timestamptz) is
  'The amounts of a budget in the period of a moment. Takes no lock, and changes nothing.';

create function dalsegno.check_budgets(of_campaign uuid, of_agent text, micros bigint, tokens bigint, moment timestamptz) returns jsonb
  language sql stable as $body$
  select r.refusal
    from dalsegno.budgets as b
   cross join lateral (select dalsegno.refuse_amount(dalsegno.budget_at(b, moment), micros, tokens) as refusal) as r
   where b.id = any (dalsegno.budgets_of(of_campaign, of_agent)) and r.refusal is not null order by b.id limit 1
$body$;
comment on function dalsegno.check_budgets(uuid, text, bigint, bigint, timestamptz) is
  'Returns the refusal of the first budget of the agent, the user and the day without space for an amount. Takes no lock.';

create function dalsegno.spent_of(of_owner text, of_key text, since timestamptz, out micros bigint, out tokens bigint) language sql stable as $body$
  -- Reruns are paid from the budget for experiments.
  select coalesce(sum(u.cost_micros), 0)::bigint,
         coalesce(sum(coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0) + coalesce(u.cache_read_tokens, 0)
                      + coalesce(u.cache_creation_tokens, 0)), 0)::bigint
    from dalsegno.usage as u
   where u.purpose <> 'rerun' and (since is null or u.called_at >= since)
     and case of_owner when 'day' then true when 'agent' then u.agent = of_key
              else u.campaign_id in (select c.campaign_id from dalsegno.campaign_users as c where c.user_name = of_key) end
$body$;
comment on function dalsegno.spent_of(text, text, timestamptz) is
  'What the ledger has for an agent, a user or a day. Calls that end while the budget is set may be missing.';

create function dalsegno.change_budget(of_owner text, of_key text, zone text, change jsonb, moment timestamptz) returns void
  language plpgsql as $body$
declare
  day date := case when of_owner = 'day' then (moment at time zone zone)::date end;
begin
  if not exists (select from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key) then
    insert into dalsegno.budgets (created_at, owner, key, period, time_zone, spent_micros, spent_tokens)
    select moment, of_owner, of_key, day, case when of_owner = 'day' then zone end, s.micros, s.tokens
      from dalsegno.spent_of(of_owner, of_key, day::timestamp at time zone zone) as s
    on conflict on constraint budgets_owner_unique do nothing;
  end if;
  perform dalsegno.lock_budget(of_owner, of_key, moment);
  update dalsegno.budgets as b
     set limit_micros = case when change ? 'micros' then (change ->> 'micros')::bigint else b.limit_micros end,
         limit_tokens = case when change ? 'tokens' then (change ->> 'tokens')::bigint else b.limit_tokens end,
         soft_micros = case when change ? 'soft_micros' then (change ->> 'soft_micros')::bigint else b.soft_micros end,
         soft_tokens = case when change ? 'soft_tokens' then (change ->> 'soft_tokens')::bigint else b.soft_tokens end,
         on_limit = coalesce(change ->> 'on_limit', b.on_limit),
         warned_at = case when change ?| array['soft_micros', 'soft_tokens'] then null else b.warned_at end,
         time_zone = case when of_owner = 'day' then zone end
   where b.owner = of_owner and b.key = of_key;
  delete from dalsegno.budgets as b
   where b.owner = of_owner and b.key = of_key
     and coalesce(b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens) is null;
  perform dalsegno.wake_for_budget(of_owner, of_key, moment);
end
$body$;
comment on function dalsegno.change_budget(text, text, text, jsonb, timestamptz) is
  'Sets the limits that the change names, of the budget of an agent, a user or a day, and wakes tasks for which there is space now. A new '
  'budget begins with what the ledger has. Without any limit it is removed.';

create function dalsegno.list_budgets(moment timestamptz) returns table (
    owner text, key text, name text, period date, time_zone text, ends_at timestamptz, on_limit text, warned_at timestamptz, limit_micros bigint,
    limit_tokens bigint, soft_micros bigint, soft_tokens bigint, spent_micros bigint, spent_tokens bigint, reserved_micros bigint,
    reserved_tokens bigint, n_waiting bigint)
  language sql stable as $body$
  select l.*, (select count(*) from dalsegno.budget_waits as w join dalsegno.tasks as t on t.id = w.task_id and t.ended_at is null
                where w.owner = l.owner and w.key = l.key)
    from (select b.owner, b.key, null::text, a.period, a.time_zone, a.ends_at, b.on_limit,
                 case when a.period = b.period or b.period is null then b.warned_at end,
                 b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens, a.spent_micros, a.spent_tokens, b.reserved_micros, b.reserved_tokens
            from dalsegno.budgets as b cross join lateral dalsegno.budget_at(b, moment) as a
          union all
          select 'campaign', c.id::text, c.name, null, null, null, b.on_limit, b.warned_at, b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens,
                 b.spent_micros + s.micros, b.spent_tokens + s.tokens, b.reserved_micros, b.reserved_tokens
            from dalsegno.campaign_budgets as b
            join dalsegno.campaigns as c on c.id = b.campaign_id and c.status <> 'closed'
           cross join lateral (select coalesce(sum(s.spent_micros), 0)::bigint as micros, coalesce(sum(s.spent_tokens), 0)::bigint as tokens
                                 from dalsegno.campaign_spending as s where s.campaign_id = b.campaign_id) as s
           where coalesce(b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens) is not null
         ) as l (owner, key, name, period, time_zone, ends_at, on_limit, warned_at, limit_micros, limit_tokens, soft_micros, soft_tokens,
                 spent_micros, spent_tokens, reserved_micros, reserved_tokens)
$body$;
comment on function dalsegno.list_budgets(timestamptz) is
  'All budgets of agents, users and days, and those of open campaigns with a limit, with their amounts in the period of the moment.';

create function dalsegno.remove_budget_data(of_campaign uuid) returns void language sql as $body$
  delete from dalsegno.budget_waits as w using dalsegno.tasks as t where t.id = w.task_id and t.campaign_id = of_campaign;
  delete from dalsegno.budgets as b
   using dalsegno.campaign_users as u
   where u.campaign_id = of_campaign and b.owner = 'user' and b.key = u.user_name
     and not exists (select from dalsegno.campaign_users as o where o.user_name = u.user_name and o.campaign_id <> of_campaign);
$body$;
comment on function dalsegno.remove_budget_data(uuid) is
  'Removes waits of a campaign that is erased, and the budget of its user, unless another campaign works for that user. Called before the '
  'campaign loses its user.';
