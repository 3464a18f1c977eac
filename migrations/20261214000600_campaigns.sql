-- Campaigns: pieces of work with a brief and a budget.
--
-- Money is in micro-units: 1,000,000 are one unit of the currency in the configuration.
-- No campaign is ever removed; an erasure empties it. So rows that a turn or an enqueue writes name a campaign without a foreign
-- key: a key would lock the campaign's row, which all who add to it would share. With sixteen at once that lock was a fifth of the
-- cost of adding a task.

create table dalsegno.campaigns (
  id uuid not null default gen_random_uuid() constraint campaigns_pkey primary key,
  created_at timestamptz not null default now(),
  closed_at timestamptz,
  status text not null default 'active' constraint campaigns_status_known check (status in ('active', 'paused', 'closed')),
  name text not null constraint campaigns_name_length check (char_length(name) between 1 and 200 and btrim(name) <> ''),
  brief text not null default '' constraint campaigns_brief_length check (octet_length(brief) <= 262144),
  client_context text constraint campaigns_client_context_length check (octet_length(client_context) <= 262144),
  constraint campaigns_closed_complete check ((status = 'closed') = (closed_at is not null))
);
comment on table dalsegno.campaigns is 'A piece of work for a client. Owns tasks, sessions and a budget.';
comment on column dalsegno.campaigns.status is 'active; paused: tasks are taken in, none is started; closed: no more tasks.';
comment on column dalsegno.campaigns.brief is 'Subject of the work. Goes into the system part of every call.';
comment on column dalsegno.campaigns.client_context is
  'Tone, audience and facts of the client. Goes into the system part of every call, never into a history.';

create function dalsegno.keep_campaigns() returns trigger language plpgsql as $body$
begin
  raise foreign_key_violation using
    message = format('campaign %s stays: its tasks, its sessions and its bill name it', old.id),
    hint = '`dalsegno campaign erase` removes what was said in it.';
end
$body$;
comment on function dalsegno.keep_campaigns() is
  'No campaign is removed. Tasks name one without a key, because a key would lock its row.';

create trigger campaigns_stay before delete on dalsegno.campaigns
  for each row execute function dalsegno.keep_campaigns();

-------------------------------------------------------------------------------------------- budgets
create table dalsegno.campaign_budgets (
  campaign_id uuid not null
    constraint campaign_budgets_pkey primary key
    constraint campaign_budgets_campaign references dalsegno.campaigns (id),
  limit_micros bigint constraint campaign_budgets_limit_micros_positive check (limit_micros > 0),
  limit_tokens bigint constraint campaign_budgets_limit_tokens_positive check (limit_tokens > 0),
  spent_micros bigint not null default 0,
  spent_tokens bigint not null default 0,
  reserved_micros bigint not null default 0,
  reserved_tokens bigint not null default 0,
  constraint campaign_budgets_not_negative
    check (least(spent_micros, spent_tokens, reserved_micros, reserved_tokens) >= 0)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.campaign_budgets is
  'Limits, spending and reservations of a campaign. Apart from the campaign, because every turn rewrites this row and no turn rewrites '
  'a brief.';
comment on column dalsegno.campaign_budgets.limit_micros is 'Money, in micro-units. NULL: no limit.';
comment on column dalsegno.campaign_budgets.reserved_micros is
  'Set aside by turns that run. The share of each is on its row in dalsegno.turns, so that a lost turn gives it back.';

-- Every campaign has its row in campaign_budgets: turns read it, reserve in it and settle it. The trigger is deferred to the end of
-- the transaction, so that a transaction that opens the budget with limits of its own comes first.
create function dalsegno.open_budget() returns trigger language plpgsql as $body$
begin
  insert into dalsegno.campaign_budgets (campaign_id)
  select c.id from dalsegno.campaigns as c where c.id = new.id
  on conflict on constraint campaign_budgets_pkey do nothing;
  return null;
end
$body$;
comment on function dalsegno.open_budget() is 'Gives a campaign a budget without limits, unless it has one.';

create constraint trigger campaigns_have_a_budget after insert on dalsegno.campaigns
  deferrable initially deferred for each row execute function dalsegno.open_budget();

create table dalsegno.campaign_spending (
  campaign_id uuid not null constraint campaign_spending_campaign references dalsegno.campaigns (id),
  shard smallint not null,
  spent_micros bigint not null,
  spent_tokens bigint not null,
  constraint campaign_spending_pkey primary key (campaign_id, shard)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.campaign_spending is
  'Spending of a campaign without a reservation. Counts beside spent_micros and spent_tokens of dalsegno.campaign_budgets: a turn that '
  'needs no reservation must not wait for that one row.';
comment on column dalsegno.campaign_spending.shard is
  'By the connection that adds, so that turns that end at the same moment do not wait for each other.';

--------------------------------------------------------------------------------------- taking tasks
create function dalsegno.campaign_lock(campaign_id uuid) returns bigint language sql immutable parallel safe as $body$
  select uuid_hash_extended(campaign_id, 0)
$body$;
comment on function dalsegno.campaign_lock(uuid) is
  'The number of an advisory lock: shared by transactions that add tasks to the campaign, exclusive for a transaction that waits for '
  'their ends.';

create function dalsegno.check_campaign_takes_tasks(campaign_id uuid) returns void language plpgsql volatile as $body$
#variable_conflict use_variable
declare
  found_ record;
  unit text;
  top bigint;
  spent bigint;
begin
  -- Before the look, which is a statement of its own: a transaction that closes the campaign
  -- and then waits for this lock is seen here, or sees the task.
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
  -- Spending without a reservation is counted beside the budget's own row.
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
