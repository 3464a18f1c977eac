-- Budgets that tasks wait for: of a campaign, a task, an agent, a user and a day, each with a soft and a hard limit.
--
-- The limits of a campaign stay in campaign_budgets, those of a task in tasks: older versions read them there. The new table has the
-- budgets of agents, users and days. One set of functions reserves, settles, waits and wakes for all of them.
--
-- Order of locks: the row of the campaign, those of dalsegno.budgets by their ids, then waits, then jobs. A turn takes the locks of its
-- session and its task before. Jobs of other tasks are skipped where another transaction has locked them.
--
-- Race: a budget gets space while a task is about to wait for it. Both lock the row of the budget first. The task looks again under that
-- lock before it waits, and who makes space reads the waits after it has the lock.
--
-- Adds: budgets, budget_waits. Changes: campaign_budgets, turns, and check_campaign_takes_tasks, which lets tasks wait.

alter table dalsegno.campaign_budgets
  add column soft_micros bigint constraint campaign_budgets_soft_micros_positive check (soft_micros > 0),
  add column soft_tokens bigint constraint campaign_budgets_soft_tokens_positive check (soft_tokens > 0),
  add column warned_at timestamptz,
  add column on_limit text not null default 'wait' constraint campaign_budgets_on_limit_known check (on_limit in ('wait', 'fail'));
comment on column dalsegno.campaign_budgets.soft_micros is 'Spending at which a warning is written, in micro-units. NULL: none.';
comment on column dalsegno.campaign_budgets.warned_at is 'When the warning was written. NULL: not yet.';
comment on column dalsegno.campaign_budgets.on_limit is 'Effect of the limit on tasks: wait until there is space, or fail.';

alter table dalsegno.turns add column budgets bigint[];
comment on column dalsegno.turns.budgets is
  'Rows of dalsegno.budgets in which its reservation is set aside, beside that of the campaign. NULL: begun by an older version.';

create table dalsegno.budgets (
  id bigint generated always as identity constraint budgets_pkey primary key,
  created_at timestamptz not null,
  warned_at timestamptz,
  period date,
  limit_micros bigint constraint budgets_limit_micros_positive check (limit_micros > 0),
  limit_tokens bigint constraint budgets_limit_tokens_positive check (limit_tokens > 0),
  soft_micros bigint constraint budgets_soft_micros_positive check (soft_micros > 0),
  soft_tokens bigint constraint budgets_soft_tokens_positive check (soft_tokens > 0),
  spent_micros bigint not null default 0,
  spent_tokens bigint not null default 0,
  reserved_micros bigint not null default 0,
  reserved_tokens bigint not null default 0,
  owner text not null constraint budgets_owner_known check (owner in ('agent', 'user', 'day')),
  key text not null collate "C",
  on_limit text not null default 'wait' constraint budgets_on_limit_known check (on_limit in ('wait', 'fail')),
  time_zone text,
  constraint budgets_owner_unique unique (owner, key),
  constraint budgets_not_negative check (least(spent_micros, spent_tokens, reserved_micros, reserved_tokens) >= 0),
  constraint budgets_period_complete check ((owner = 'day') = (period is not null) and (owner = 'day') = (time_zone is not null)
    and (owner = 'day') = (key = ''))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.budgets is 'Limits, spending and reservations of agents, users and days, over all campaigns.';
comment on column dalsegno.budgets.key is 'The name of the agent or the user; empty for the budget of a day.';
comment on column dalsegno.budgets.period is 'The day that the spending belongs to, in the time zone of the row. NULL: no period.';
comment on column dalsegno.budgets.time_zone is 'Name of the IANA list, from scheduler.time_zone. A day ends at its midnight.';
comment on column dalsegno.budgets.reserved_micros is
  'Set aside by turns that run; the share of each is on its row in dalsegno.turns. It goes on into the next period.';
comment on column dalsegno.budgets.soft_micros is 'Spending at which a warning is written, once per period. NULL: none.';

create table dalsegno.budget_waits (
  task_id uuid not null
    constraint budget_waits_pkey primary key
    constraint budget_waits_task references dalsegno.tasks (id) on delete cascade,
  job_id bigint not null,
  since timestamptz not null,
  needed_micros bigint not null,
  needed_tokens bigint not null,
  owner text not null constraint budget_waits_owner_known check (owner in ('campaign', 'task', 'agent', 'user', 'day')),
  key text not null collate "C"
);
comment on table dalsegno.budget_waits is
  'Tasks that wait for space in a budget. Their jobs are put off, and keep their places in their lanes.';
comment on column dalsegno.budget_waits.needed_micros is 'What the next call needs, as far as it is known.';
comment on column dalsegno.budget_waits.key is 'Id of the campaign or task, or the key of dalsegno.budgets.';

-- In the order in which tasks are woken: ids of tasks are ordered by their creation.
create index budget_waits_by_budget on dalsegno.budget_waits (owner, key, task_id);

------------------------------------------------------------------------------------------- amounts
create type dalsegno.budget_amounts as (
  owner text, key text, period date, time_zone text, ends_at timestamptz, on_limit text,
  limit_micros bigint, limit_tokens bigint, spent_micros bigint, spent_tokens bigint, reserved_micros bigint, reserved_tokens bigint);
comment on type dalsegno.budget_amounts is 'A budget at one moment.';

create function dalsegno.lock_budget(of_owner text, of_key text, moment timestamptz) returns dalsegno.budget_amounts
  language plpgsql as $body$
declare
  held record;
  amounts dalsegno.budget_amounts;
  beside record;
begin
  amounts.owner := of_owner;
  amounts.key := of_key;
  if of_owner = 'task' then
    select t.* into held from dalsegno.tasks as t where t.id = of_key::uuid for no key update;
    amounts.limit_micros := held.budget_micros;
    amounts.limit_tokens := held.budget_tokens;
    amounts.reserved_micros := 0;
    amounts.reserved_tokens := 0;
  else
    if of_owner = 'campaign' then
      select b.*, null::date as period, null::text as time_zone into held
        from dalsegno.campaign_budgets as b where b.campaign_id = of_key::uuid for no key update;
    else
      select b.* into held from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key for no key update;
      if (moment at time zone held.time_zone)::date > held.period then
        -- Turns that run now are charged to the day of their end, so their reservations stay.
        update dalsegno.budgets as b
           set period = (moment at time zone held.time_zone)::date, spent_micros = 0, spent_tokens = 0, warned_at = null
         where b.owner = of_owner and b.key = of_key
        returning b.* into held;
      end if;
    end if;
    amounts.limit_micros := held.limit_micros;
    amounts.limit_tokens := held.limit_tokens;
    amounts.reserved_micros := held.reserved_micros;
    amounts.reserved_tokens := held.reserved_tokens;
    amounts.on_limit := held.on_limit;
    amounts.period := held.period;
    amounts.time_zone := held.time_zone;
    amounts.ends_at := (held.period + 1)::timestamp at time zone held.time_zone;
  end if;
  amounts.spent_micros := held.spent_micros;
  amounts.spent_tokens := held.spent_tokens;
  if of_owner = 'campaign' and (amounts.limit_micros is not null or amounts.limit_tokens is not null) then
    -- Spending without a reservation is counted beside the budget's own row. A statement of its own, with a snapshot from after the lock.
    select coalesce(sum(s.spent_micros), 0) as micros, coalesce(sum(s.spent_tokens), 0) as tokens into beside
      from dalsegno.campaign_spending as s where s.campaign_id = of_key::uuid;
    amounts.spent_micros := amounts.spent_micros + beside.micros;
    amounts.spent_tokens := amounts.spent_tokens + beside.tokens;
  end if;
  return amounts;
end
$body$;
comment on function dalsegno.lock_budget(text, text, timestamptz) is
  'Locks the row of a budget until the end of the transaction, begins the period of this moment, and returns its amounts. A budget that '
  'does not exist has no limits.';

create function dalsegno.refuse_amount(held dalsegno.budget_amounts, micros bigint, tokens bigint) returns jsonb
  language sql stable as $body$
  select jsonb_build_object('owner', held.owner, 'key', held.key, 'unit', u.unit, 'limit', u.top, 'spent', u.spent, 'reserved', u.reserved,
                            'needed', u.needed, 'on_limit', coalesce(held.on_limit, 'wait'), 'period', held.period, 'ends_at', held.ends_at,
                            'ends', to_char(held.ends_at at time zone held.time_zone, 'YYYY-MM-DD HH24:MI') || ' ' || held.time_zone)
    from (values (1, 'money', held.limit_micros, held.spent_micros, held.reserved_micros, micros),
                 (2, 'tokens', held.limit_tokens, held.spent_tokens, held.reserved_tokens, tokens)) as u (place, unit, top, spent, reserved, needed)
   where u.spent + u.reserved + u.needed > u.top order by u.place limit 1
$body$;
comment on function dalsegno.refuse_amount(dalsegno.budget_amounts, bigint, bigint) is
  'Returns NULL where an amount fits beside what is spent and reserved, else the numbers of the limit that it exceeds.';

create function dalsegno.is_budget_of(owner text, key text, of_campaign uuid, of_agent text) returns boolean language sql stable as $body$
  select case owner when 'day' then true when 'agent' then key = of_agent
                    else exists (select from dalsegno.campaign_users as u where u.campaign_id = of_campaign and u.user_name = key) end
$body$;
comment on function dalsegno.is_budget_of(text, text, uuid, text) is
  'Returns true if a row of dalsegno.budgets pays for the turns of an agent in a campaign.';

create function dalsegno.budgets_of(of_campaign uuid, of_agent text) returns bigint[] language sql stable as $body$
  select coalesce(array_agg(b.id order by b.id), '{}')
    from dalsegno.budgets as b
   where (b.owner = 'day' and b.key = '') or (b.owner = 'agent' and b.key = of_agent)
      or (b.owner = 'user' and b.key = (select u.user_name from dalsegno.campaign_users as u where u.campaign_id = of_campaign))
$body$;
comment on function dalsegno.budgets_of(uuid, text) is
  'The rows of dalsegno.budgets that pay for the turns of an agent in a campaign.';

--------------------------------------------------------------------------------- reserve and settle
create function dalsegno.reserve_budgets(of_campaign uuid, budget_ids bigint[], micros bigint, tokens bigint, moment timestamptz)
  returns jsonb language plpgsql as $body$
declare
  one record;
  refusal jsonb;
begin
  refusal := dalsegno.refuse_amount(dalsegno.lock_budget('campaign', of_campaign::text, moment), micros, tokens);
  if refusal is not null then
    return refusal;
  end if;
  update dalsegno.campaign_budgets as b set reserved_micros = b.reserved_micros + micros, reserved_tokens = b.reserved_tokens + tokens
   where b.campaign_id = of_campaign;
  if not found then
    raise exception 'campaign % has no budget', of_campaign;
  end if;
  for one in select b.id, b.owner, b.key from dalsegno.budgets as b where b.id = any (budget_ids) order by b.id loop
    refusal := dalsegno.refuse_amount(dalsegno.lock_budget(one.owner, one.key, moment), micros, tokens);
    if refusal is not null then
      return refusal;
    end if;
    update dalsegno.budgets as b set reserved_micros = b.reserved_micros + micros, reserved_tokens = b.reserved_tokens + tokens
     where b.id = one.id;
  end loop;
  return null;
end
$body$;
comment on function dalsegno.reserve_budgets(uuid, bigint[], bigint, bigint, timestamptz) is
  'Sets an amount aside in the budget of a campaign and in these rows of dalsegno.budgets. Returns NULL, or the refusal of the first one '
  'without space: the caller then rolls back.';

create function dalsegno.charge_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
declare
  one record;
  is_set_aside boolean;
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
     where b.id = one.id;
    touched := touched || array[array[one.owner, one.key]];
  end loop;
  -- After all locks of budgets.
  for at in 1 .. coalesce(array_length(touched, 1), 0) loop
    perform dalsegno.wake_for_budget(touched[at][1], touched[at][2], moment);
  end loop;
end
$body$;
comment on function dalsegno.charge_budgets(uuid, text, uuid, bigint[], bigint, bigint, bigint, bigint, timestamptz) is
  'Charges an amount to the rows of dalsegno.budgets that pay for an agent in a campaign, releases a reservation in those of the list, and '
  'wakes tasks for which there is space now.';

create function dalsegno.settle_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
begin
  if freed_micros <> 0 or freed_tokens <> 0 then
    update dalsegno.campaign_budgets as b
       set reserved_micros = b.reserved_micros - freed_micros, reserved_tokens = b.reserved_tokens - freed_tokens,
           spent_micros = b.spent_micros + micros, spent_tokens = b.spent_tokens + tokens
     where b.campaign_id = of_campaign;
    if not found then
      raise exception 'campaign % has no budget', of_campaign;
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
comment on function dalsegno.settle_budgets(uuid, text, uuid, bigint[], bigint, bigint, bigint, bigint, timestamptz) is
  'Releases a reservation, charges the actual amount, and wakes tasks for which there is space now.';

------------------------------------------------------------------------------------- wait and wake
create function dalsegno.await_period(of_owner text, of_key text, ends_at timestamptz, moment timestamptz) returns void
  language plpgsql as $body$
begin
  if ends_at is not null then
    perform dalsegno.enqueue(kind => 'begin_budget_period', payload => jsonb_build_object('owner', of_owner, 'key', of_key), queue => 'turns',
                             run_at => clock_timestamp() + (ends_at - moment), idempotency_key => format('budget %s %s %s', of_owner, of_key, ends_at));
  end if;
end
$body$;
comment on function dalsegno.await_period(text, text, timestamptz, timestamptz) is
  'Puts one job on the queue that wakes the waiting tasks when the next period of a budget has begun.';

create function dalsegno.wait_for_budget(waiting uuid, of_job bigint, of_owner text, of_key text, micros bigint, tokens bigint,
        moment timestamptz) returns boolean language plpgsql as $body$
declare
  held dalsegno.budget_amounts;
begin
  held := dalsegno.lock_budget(of_owner, of_key, moment);
  if dalsegno.refuse_amount(held, micros, tokens) is null then
    return false;
  end if;
  insert into dalsegno.budget_waits as w (task_id, job_id, since, needed_micros, needed_tokens, owner, key)
  values (waiting, of_job, moment, micros, tokens, of_owner, of_key)
  on conflict on constraint budget_waits_pkey do update
     set job_id = excluded.job_id, since = excluded.since, needed_micros = excluded.needed_micros, needed_tokens = excluded.needed_tokens,
         owner = excluded.owner, key = excluded.key;
  perform dalsegno.await_period(of_owner, of_key, held.ends_at, moment);
  return true;
end
$body$;
comment on function dalsegno.wait_for_budget(uuid, bigint, text, text, bigint, bigint, timestamptz) is
  'Lets a task, whose job the caller puts off in the same transaction, wait until an amount fits. false: it fits now.';

create function dalsegno.wake_for_budget(of_owner text, of_key text, moment timestamptz) returns integer language plpgsql as $body$
declare
  held dalsegno.budget_amounts;
  wait record;
  state text;
  n_woken integer := 0;
begin
  if not exists (select from dalsegno.budget_waits as w where w.owner = of_owner and w.key = of_key) then
    return 0;
  end if;
  held := dalsegno.lock_budget(of_owner, of_key, moment);
  -- Of tasks that were cancelled while they waited.
  delete from dalsegno.budget_waits as w using dalsegno.tasks as t
   where w.owner = of_owner and w.key = of_key and t.id = w.task_id and t.ended_at is not null;
  for wait in
    select w.* from dalsegno.budget_waits as w
     where w.owner = of_owner and w.key = of_key and dalsegno.refuse_amount(held, w.needed_micros, w.needed_tokens) is null
     order by w.task_id for update skip locked
  loop
    -- Each task that is woken takes its part. A later one that needs less may still fit.
    continue when dalsegno.refuse_amount(held, wait.needed_micros, wait.needed_tokens) is not null;
    state := dalsegno.end_snooze(wait.job_id);
    continue when state = 'busy';
    delete from dalsegno.budget_waits as w where w.task_id = wait.task_id;
    if state = 'ended' then
      held.reserved_micros := held.reserved_micros + wait.needed_micros;
      held.reserved_tokens := held.reserved_tokens + wait.needed_tokens;
      n_woken := n_woken + 1;
    end if;
  end loop;
  if n_woken > 0 then
    perform dalsegno.promote_due();
  end if;
  if held.ends_at is not null and exists (select from dalsegno.budget_waits as w where w.owner = of_owner and w.key = of_key) then
    perform dalsegno.await_period(of_owner, of_key, held.ends_at, moment);
  end if;
  return n_woken;
end
$body$;
comment on function dalsegno.wake_for_budget(text, text, timestamptz) is
  'Wakes the tasks that wait for a budget, in the order in which they were added, as many as fit into the space that is left. Returns '
  'their number.';

-------------------------------------------------------------------------------------- taking tasks
create or replace function dalsegno.check_campaign_takes_tasks(campaign_id uuid) returns void language plpgsql volatile as $body$
#variable_conflict use_variable
declare
  found_ record;
  refusal jsonb;
begin
  -- Before the look, which is a statement of its own: a transaction that closes the campaign
  -- and then waits for this lock is seen here, or sees the task.
  perform pg_advisory_xact_lock_shared(dalsegno.campaign_lock(campaign_id));
  select c.status, b.limit_micros, b.limit_tokens, b.spent_micros, b.spent_tokens, b.on_limit into found_
    from dalsegno.campaigns as c left join dalsegno.campaign_budgets as b on b.campaign_id = c.id
   where c.id = campaign_id;
  if found_.status is null then
    raise exception using errcode = 'DS404', constraint = 'campaign_exists',
      message = format('there is no campaign %s', coalesce(campaign_id::text, 'NULL')), hint = '`dalsegno campaign ls` lists them.';
  elsif found_.status = 'closed' then
    raise exception using errcode = 'DS409', constraint = 'campaign_is_open',
      message = format('campaign %s is closed and takes no more tasks', campaign_id),
      hint = 'Create another one: `dalsegno campaign create`.';
  elsif found_.on_limit is distinct from 'fail' or (found_.limit_micros is null and found_.limit_tokens is null) then
    -- At the limit, its tasks are added and wait.
    return;
  end if;
  -- Spending without a reservation is counted beside the budget's own row.
  select dalsegno.refuse_amount(
           row ('campaign', campaign_id::text, null, null, null, found_.on_limit, found_.limit_micros, found_.limit_tokens,
                coalesce(sum(c.spent_micros), 0) + found_.spent_micros, coalesce(sum(c.spent_tokens), 0) + found_.spent_tokens,
                0, 0)::dalsegno.budget_amounts, 1, 1) into refusal
    from dalsegno.campaign_spending as c where c.campaign_id = campaign_id;
  if refusal is not null then
    raise exception using errcode = 'DS409', constraint = 'campaign_has_budget',
      message = format('the budget of campaign %s is used up', campaign_id),
      detail = refusal::text,
      hint = 'Raise the limit with `dalsegno campaign budget`.';
  end if;
end
$body$;
comment on function dalsegno.check_campaign_takes_tasks(uuid) is
$comment$Raises DS404 (no such campaign) or DS409 (it is closed, or its budget is used up and its tasks fail at the limit); the name of the
constraint says which, and the detail of a budget has its figures as JSON. No lock on the rows: the turn decides. Until the end of the
transaction an erasure of the campaign waits.$comment$;
