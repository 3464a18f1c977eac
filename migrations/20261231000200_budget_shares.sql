-- Shares of the budgets of agents, users and days, so that turns that begin or end at the same moment do not wait for each other.
--
-- Each such budget has 32 shares. A share has a part of the limit that its turns may reserve on their own. The parts never exceed the
-- limit together, so neither do the reservations. A turn that does not fit into its share locks the budget with all of its shares, decides
-- by their sums, and divides what is left anew. A reservation may be released in another share than that of its begin: only sums count.
--
-- Order of locks: the row of the campaign; then each budget by its id: its row, its shares by their numbers; then waits, then jobs. A
-- transaction that holds only its own share takes no other lock of that budget. One that may need them all locks them first, with
-- dalsegno.lock_budgets: at the end of a turn whose task then waits, and before a turn that begins after one of a lost worker.
--
-- Race: a budget gets space while a task is about to wait for it. The task holds all shares when it looks again and waits. A turn that
-- ends takes its share before, and the task sees what it released; or after, and the turn sees the wait. It then holds its share and must not
-- lock the others, so it leaves the wake-up to a job.
--
-- Adds: budget_shares. Changes: budgets, whose amounts move there, and the functions that read or change them.

create table dalsegno.budget_shares (
  budget_id bigint not null constraint budget_shares_budget references dalsegno.budgets (id) on delete cascade,
  allowed_micros bigint,
  allowed_tokens bigint,
  spent_micros bigint not null default 0,
  spent_tokens bigint not null default 0,
  reserved_micros bigint not null default 0,
  reserved_tokens bigint not null default 0,
  share smallint not null,
  constraint budget_shares_pkey primary key (budget_id, share),
  constraint budget_shares_spent_not_negative check (least(spent_micros, spent_tokens) >= 0)
) with (fillfactor = 25, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.budget_shares is
  'Spending and reservations of the budgets of agents, users and days, in 32 rows each. Those of a budget are the sums.';
comment on column dalsegno.budget_shares.share is
  'By the connection that begins or ends a turn, so that turns at the same moment do not wait for each other.';
comment on column dalsegno.budget_shares.allowed_micros is
  'Part of the limit: as long as spent and reserved amounts of the share stay below it, a turn reserves without a look at the others. NULL: no limit.';
comment on column dalsegno.budget_shares.reserved_micros is
  'Set aside by turns that run. Negative where more was released than set aside in this share.';

create function dalsegno.own_share() returns smallint language sql stable as $body$
  select (pg_backend_pid() & 31)::smallint
$body$;
comment on function dalsegno.own_share() is 'The share of a budget that this connection uses.';

create function dalsegno.divide_budget(of_budget bigint) returns void language sql as $body$
  update dalsegno.budget_shares as s
     set allowed_micros = case when b.limit_micros is not null
                               then s.spent_micros + s.reserved_micros + greatest(b.limit_micros - t.micros, 0) / 32 end,
         allowed_tokens = case when b.limit_tokens is not null
                               then s.spent_tokens + s.reserved_tokens + greatest(b.limit_tokens - t.tokens, 0) / 32 end
    from dalsegno.budgets as b,
         (select sum(o.spent_micros + o.reserved_micros)::bigint as micros, sum(o.spent_tokens + o.reserved_tokens)::bigint as tokens
            from dalsegno.budget_shares as o where o.budget_id = of_budget) as t
   where b.id = of_budget and s.budget_id = of_budget
$body$;
comment on function dalsegno.divide_budget(bigint) is
  'Divides what is left of a budget among its shares. The caller has locked the budget with dalsegno.lock_budget.';

create function dalsegno.add_budget_shares() returns trigger language plpgsql as $body$
begin
  insert into dalsegno.budget_shares (budget_id, share) select new.id, n from generate_series(0, 31) as n;
  perform dalsegno.divide_budget(new.id);
  return null;
end
$body$;
comment on function dalsegno.add_budget_shares() is 'Adds the shares of a new budget.';

create trigger budgets_add_shares after insert on dalsegno.budgets for each row execute function dalsegno.add_budget_shares();

insert into dalsegno.budget_shares (budget_id, share, spent_micros, spent_tokens, reserved_micros, reserved_tokens)
select b.id, n, case when n = 0 then b.spent_micros else 0 end, case when n = 0 then b.spent_tokens else 0 end,
       case when n = 0 then b.reserved_micros else 0 end, case when n = 0 then b.reserved_tokens else 0 end
  from dalsegno.budgets as b, generate_series(0, 31) as n;
select dalsegno.divide_budget(b.id) from dalsegno.budgets as b;

update dalsegno.budgets set spent_micros = 0, spent_tokens = 0, reserved_micros = 0, reserved_tokens = 0;
comment on column dalsegno.budgets.spent_micros is 'Unused: the spending is in dalsegno.budget_shares. Older versions name the column.';
comment on column dalsegno.budgets.reserved_micros is 'Unused: the reservations are in dalsegno.budget_shares. Older versions name the column.';
comment on table dalsegno.budgets is 'Limits of agents, users and days, over all campaigns. Their amounts are in dalsegno.budget_shares.';

------------------------------------------------------------------------------------ locks and sums
create or replace function dalsegno.budget_at(budget dalsegno.budgets, moment timestamptz) returns dalsegno.budget_amounts
  language sql stable as $body$
  select row (budget.owner, budget.key, d.day, budget.time_zone, (d.day + 1)::timestamp at time zone budget.time_zone, budget.on_limit,
              budget.limit_micros, budget.limit_tokens, case when d.is_over then 0 else s.spent_micros end,
              case when d.is_over then 0 else s.spent_tokens end, s.reserved_micros, s.reserved_tokens)::dalsegno.budget_amounts
    from (select greatest(budget.period, (moment at time zone budget.time_zone)::date) as day,
                 coalesce((moment at time zone budget.time_zone)::date > budget.period, false) as is_over) as d,
         (select sum(s.spent_micros)::bigint as spent_micros, sum(s.spent_tokens)::bigint as spent_tokens,
                 sum(s.reserved_micros)::bigint as reserved_micros, sum(s.reserved_tokens)::bigint as reserved_tokens
            from dalsegno.budget_shares as s where s.budget_id = budget.id) as s
$body$;

create or replace function dalsegno.lock_budget(of_owner text, of_key text, moment timestamptz) returns dalsegno.budget_amounts
  language plpgsql as $body$
declare
  held record;
  budget dalsegno.budgets;
  amounts dalsegno.budget_amounts;
  beside record;
begin
  if of_owner not in ('campaign', 'task') then
    select b.* into budget from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key for no key update;
    perform from dalsegno.budget_shares as s where s.budget_id = budget.id order by s.share for no key update;
    if (moment at time zone budget.time_zone)::date > budget.period then
      -- Turns that run now are charged to the day of their end, so their reservations stay.
      update dalsegno.budgets as b set period = (moment at time zone b.time_zone)::date, warned_at = null where b.id = budget.id
      returning b.* into budget;
      update dalsegno.budget_shares as s set spent_micros = 0, spent_tokens = 0 where s.budget_id = budget.id;
      perform dalsegno.divide_budget(budget.id);
    end if;
    return dalsegno.budget_at(budget, moment);
  end if;
  amounts.owner := of_owner;
  amounts.key := of_key;
  if of_owner = 'task' then
    select t.* into held from dalsegno.tasks as t where t.id = of_key::uuid for no key update;
    amounts.limit_micros := held.budget_micros;
    amounts.limit_tokens := held.budget_tokens;
    amounts.reserved_micros := 0;
    amounts.reserved_tokens := 0;
  else
    select b.* into held from dalsegno.campaign_budgets as b where b.campaign_id = of_key::uuid for no key update;
    amounts.limit_micros := held.limit_micros;
    amounts.limit_tokens := held.limit_tokens;
    amounts.reserved_micros := held.reserved_micros;
    amounts.reserved_tokens := held.reserved_tokens;
    amounts.on_limit := held.on_limit;
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
  'Locks a budget with its shares until the end of the transaction, begins the period of this moment, and returns its amounts. A budget that '
  'does not exist has no limits.';

create or replace function dalsegno.budgets_of(of_campaign uuid, of_agent text) returns bigint[] language plpgsql stable as $body$
declare
  ids bigint[];
begin
  select array_agg(b.id order by b.id) into ids
    from dalsegno.budgets as b
   where (b.owner = 'day' and b.key = '') or (b.owner = 'agent' and b.key = of_agent)
      or (b.owner = 'user' and b.key = (select u.user_name from dalsegno.campaign_users as u where u.campaign_id = of_campaign));
  if ids is null then
    return '{}';
  end if;
  if not exists (select from dalsegno.campaign_budgets as c
                  where c.campaign_id = of_campaign
                    and coalesce(c.limit_micros, c.limit_tokens, c.soft_micros, c.soft_tokens) is not null) then
    return ids || -1::bigint;
  end if;
  return ids;
end
$body$;
comment on function dalsegno.budgets_of(uuid, text) is
  'The rows of dalsegno.budgets that pay for the turns of an agent in a campaign. If there are some, -1 stands for a campaign without limits: its '
  'turns reserve nothing in its budget, whose one row they would wait for.';

create function dalsegno.lock_budgets(of_campaign uuid, budget_ids bigint[], moment timestamptz) returns void language plpgsql as $body$
declare
  one record;
begin
  if -1 <> all (budget_ids) then
    perform dalsegno.lock_budget('campaign', of_campaign::text, moment);
  end if;
  for one in select b.owner, b.key from dalsegno.budgets as b where b.id = any (budget_ids) order by b.id loop
    perform dalsegno.lock_budget(one.owner, one.key, moment);
  end loop;
end
$body$;
comment on function dalsegno.lock_budgets(uuid, bigint[], timestamptz) is
  'Locks the budget of a campaign and these rows of dalsegno.budgets with all of their shares, in their order.';

--------------------------------------------------------------------------------- reserve and charge
create or replace function dalsegno.reserve_budgets(of_campaign uuid, budget_ids bigint[], micros bigint, tokens bigint, moment timestamptz)
  returns jsonb language plpgsql as $body$
declare
  one dalsegno.budgets;
  refusal jsonb;
begin
  if -1 <> all (budget_ids) then
    refusal := dalsegno.refuse_amount(dalsegno.lock_budget('campaign', of_campaign::text, moment), micros, tokens);
    if refusal is not null then
      return refusal;
    end if;
    update dalsegno.campaign_budgets as b set reserved_micros = b.reserved_micros + micros, reserved_tokens = b.reserved_tokens + tokens
     where b.campaign_id = of_campaign;
    if not found then
      raise exception 'campaign % has no budget', of_campaign;
    end if;
  end if;
  for one in select b.* from dalsegno.budgets as b where b.id = any (budget_ids) order by b.id loop
    if one.period is null or one.period >= (moment at time zone one.time_zone)::date then
      begin
        update dalsegno.budget_shares as s set reserved_micros = s.reserved_micros + micros, reserved_tokens = s.reserved_tokens + tokens
         where s.budget_id = one.id and s.share = dalsegno.own_share()
           and coalesce(s.spent_micros + s.reserved_micros + micros <= s.allowed_micros, true)
           and coalesce(s.spent_tokens + s.reserved_tokens + tokens <= s.allowed_tokens, true);
        if not found then
          raise exception using errcode = 'DS101', message = 'the share has no space';
        end if;
        continue;
      exception when sqlstate 'DS101' then
        -- A row that another turn changed meanwhile is locked before it is compared. The end of this block releases the lock: a turn that
        -- holds it must not lock the whole budget.
        null;
      end;
    end if;
    refusal := dalsegno.refuse_amount(dalsegno.lock_budget(one.owner, one.key, moment), micros, tokens);
    if refusal is not null then
      return refusal;
    end if;
    update dalsegno.budget_shares as s set reserved_micros = s.reserved_micros + micros, reserved_tokens = s.reserved_tokens + tokens
     where s.budget_id = one.id and s.share = dalsegno.own_share();
    perform dalsegno.divide_budget(one.id);
  end loop;
  return null;
end
$body$;

create function dalsegno.may_reach_soft_limit(budget dalsegno.budgets, micros bigint, tokens bigint, moment timestamptz) returns boolean
  language sql stable as $body$
  select coalesce(a.spent_micros + a.reserved_micros + micros >= budget.soft_micros, false)
      or coalesce(a.spent_tokens + a.reserved_tokens + tokens >= budget.soft_tokens, false)
    from dalsegno.budget_at(budget, moment) as a
$body$;
comment on function dalsegno.may_reach_soft_limit(dalsegno.budgets, bigint, bigint, timestamptz) is
  'Returns true if a charge and those of the turns that run now may reach the soft limit of a budget. Takes no lock.';

create or replace function dalsegno.warn_of_budget(of_owner text, of_key text, of_campaign uuid, of_task uuid, moment timestamptz) returns void
  language plpgsql as $body$
declare
  held record;
  beside record;
  data jsonb;
begin
  -- The caller has locked the budget.
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
    select b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens, a.spent_micros, a.spent_tokens, b.period into held
      from dalsegno.budgets as b cross join lateral dalsegno.budget_at(b, moment) as a
     where b.owner = of_owner and b.key = of_key and b.warned_at is null;
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

create or replace function dalsegno.charge_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
declare
  one dalsegno.budgets;
  is_locked boolean;
  locked dalsegno.budgets[] := '{}';
  others dalsegno.budgets[] := '{}';
begin
  for one in
    select b.* from dalsegno.budgets as b
     where b.id = any (budget_ids) or ((micros <> 0 or tokens <> 0) and dalsegno.is_budget_of(b.owner, b.key, of_campaign, of_agent))
     order by b.id
  loop
    -- The warning and the wake-up need the sum of all shares.
    is_locked := one.period < (moment at time zone one.time_zone)::date
      or exists (select from dalsegno.budget_waits as w where w.owner = one.owner and w.key = one.key);
    if is_locked is not true and one.warned_at is null and (one.soft_micros is not null or one.soft_tokens is not null) then
      is_locked := dalsegno.may_reach_soft_limit(one, micros, tokens, moment);
    end if;
    if is_locked then
      perform dalsegno.lock_budget(one.owner, one.key, moment);
      locked := array_append(locked, one);
    else
      others := array_append(others, one);
    end if;
    update dalsegno.budget_shares as s
       set reserved_micros = s.reserved_micros - case when one.id = any (budget_ids) then freed_micros else 0 end,
           reserved_tokens = s.reserved_tokens - case when one.id = any (budget_ids) then freed_tokens else 0 end,
           spent_micros = s.spent_micros + micros, spent_tokens = s.spent_tokens + tokens
     where s.budget_id = one.id and s.share = dalsegno.own_share();
    if is_locked then
      perform dalsegno.warn_of_budget(one.owner, one.key, of_campaign, of_task, moment);
    end if;
  end loop;
  -- After all locks of budgets.
  foreach one in array locked loop
    perform dalsegno.wake_for_budget(one.owner, one.key, moment);
  end loop;
  foreach one in array others loop
    if exists (select from dalsegno.budget_waits as w where w.owner = one.owner and w.key = one.key) then
      perform dalsegno.enqueue(kind => 'begin_budget_period', payload => jsonb_build_object('owner', one.owner, 'key', one.key), queue => 'turns');
    end if;
  end loop;
end
$body$;

create or replace function dalsegno.settle_budgets(of_campaign uuid, of_agent text, of_task uuid, budget_ids bigint[], freed_micros bigint,
        freed_tokens bigint, micros bigint, tokens bigint, moment timestamptz) returns void language plpgsql as $body$
declare
  is_reserved boolean := (freed_micros <> 0 or freed_tokens <> 0) and -1 <> all (budget_ids);
  may_warn boolean;
begin
  if is_reserved then
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
  if is_reserved then
    perform dalsegno.wake_for_budget('campaign', of_campaign::text, moment);
  end if;
end
$body$;

------------------------------------------------------------------------------------ limits and lists
create or replace function dalsegno.change_budget(of_owner text, of_key text, zone text, change jsonb, moment timestamptz) returns void
  language plpgsql as $body$
declare
  day date := case when of_owner = 'day' then (moment at time zone zone)::date end;
  added_id bigint;
begin
  if not exists (select from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key) then
    insert into dalsegno.budgets (created_at, owner, key, period, time_zone)
    values (moment, of_owner, of_key, day, case when of_owner = 'day' then zone end)
    on conflict on constraint budgets_owner_unique do nothing returning id into added_id;
    update dalsegno.budget_shares as s set spent_micros = l.micros, spent_tokens = l.tokens
      from dalsegno.spent_of(of_owner, of_key, day::timestamp at time zone zone) as l
     where s.budget_id = added_id and s.share = 0;
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
  perform dalsegno.divide_budget(b.id) from dalsegno.budgets as b where b.owner = of_owner and b.key = of_key;
  perform dalsegno.wake_for_budget(of_owner, of_key, moment);
end
$body$;

create or replace function dalsegno.list_budgets(moment timestamptz) returns table (
    owner text, key text, name text, period date, time_zone text, ends_at timestamptz, on_limit text, warned_at timestamptz, limit_micros bigint,
    limit_tokens bigint, soft_micros bigint, soft_tokens bigint, spent_micros bigint, spent_tokens bigint, reserved_micros bigint,
    reserved_tokens bigint, n_waiting bigint)
  language sql stable as $body$
  select l.*, (select count(*) from dalsegno.budget_waits as w join dalsegno.tasks as t on t.id = w.task_id and t.ended_at is null
                where w.owner = l.owner and w.key = l.key)
    from (select b.owner, b.key, null::text, a.period, a.time_zone, a.ends_at, b.on_limit,
                 case when a.period = b.period or b.period is null then b.warned_at end,
                 b.limit_micros, b.limit_tokens, b.soft_micros, b.soft_tokens, a.spent_micros, a.spent_tokens, a.reserved_micros, a.reserved_tokens
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
