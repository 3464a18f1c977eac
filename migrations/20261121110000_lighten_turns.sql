-- What a turn writes, made cheaper. Nothing that the tables promise is given up: it is held in places that cost less.
--
-- Checks. Postgres reads the text of every CHECK of a table anew in every statement that writes to it, whatever it
-- changes; a turn read some eighty of them. What can change is now one function per table, compiled once per connection.
-- What is settled when a row is made is looked at when it is made, or when a statement names it. Both report the names that
-- the checks had.
--
-- References. The rows that a turn adds to a session come after a change of the session's own row in the same transaction,
-- so the session is there and nobody can remove it; a key would look for it four times and lock what is locked. What a key
-- held beyond that, that no session goes before what belongs to it, is a trigger on the removal of sessions.

------------------------------------------------------------------------------------------------ tasks
create function dalsegno.is_consistent_task(
  state text, started_at timestamptz, ended_at timestamptz, has_result boolean, has_error boolean, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return state in ('queued', 'running', 'done', 'failed', 'cancelled')
     and (state in ('done', 'failed', 'cancelled')) = (ended_at is not null)
     and (state = 'done') = has_result
     and (state = 'failed') = has_error
     and (state <> 'running' or started_at is not null)
     and least_count >= 0;
end
$body$;
comment on function dalsegno.is_consistent_task(text, timestamptz, timestamptz, boolean, boolean, bigint) is
  'The state machine: which columns of a task are set in which state.';

create function dalsegno.check_asked() returns trigger language plpgsql as $body$
declare
  broken text := case
    when new.agent !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'tasks_agent_form'
    when new.instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'tasks_instance_form'
    when new.session_mode not in ('continue', 'fresh', 'none') then 'tasks_session_mode_known'
    when new.budget_micros <= 0 then 'tasks_budget_micros_positive'
    when new.budget_tokens <= 0 then 'tasks_budget_tokens_positive'
    when btrim(new.prompt) = '' then 'tasks_prompt_not_empty'
  end;
begin
  if broken is not null then
    raise check_violation using constraint = broken, schema = tg_table_schema, table = tg_table_name,
      message = format('new row for relation "tasks" violates check constraint "%s"', broken);
  end if;
  return null;
end
$body$;
comment on function dalsegno.check_asked() is 'What was asked in a task has to hold when it is asked, and if ever it is changed.';

alter table dalsegno.tasks
  drop constraint tasks_budget_micros_positive,
  drop constraint tasks_budget_tokens_positive,
  drop constraint tasks_state_known,
  drop constraint tasks_session_mode_known,
  drop constraint tasks_agent_form,
  drop constraint tasks_instance_form,
  drop constraint tasks_prompt_not_empty,
  drop constraint tasks_spent_not_negative,
  drop constraint tasks_state_machine,
  drop constraint tasks_n_waits_not_negative,
  add constraint tasks_state_machine check (dalsegno.is_consistent_task(
    state, started_at, ended_at, result is not null, error is not null, least(spent_micros, spent_tokens, n_waits))),
  -- A turn changes the row twice, and its prompt never: outside of the row it is not written again.
  set (toast_tuple_target = 128);
create trigger tasks_asked after insert or update of agent, instance, session_mode, budget_micros, budget_tokens, prompt
  on dalsegno.tasks for each row execute function dalsegno.check_asked();

------------------------------------------------------------------------------------------------ sessions
create function dalsegno.is_consistent_session(
  state text, running_turn integer, lease bigint, closed_at timestamptz, closed_because text, rebuild_because text,
  generation integer, last_generation integer, least_count bigint, head uuid, head_seq bigint, head_generation integer)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return state in ('idle', 'running', 'interrupted', 'error', 'closed')
     and (state = 'closed') = (closed_at is not null)
     and (state = 'closed') = (closed_because is not null)
     and (state = 'running') = (running_turn is not null)
     and (running_turn is null or lease is not null)
     and generation <= last_generation
     and least_count >= 0
     and (head is null) = (head_seq is null)
     and (head is null) = (head_generation is null)
     and (rebuild_because is null or rebuild_because in ('context_full', 'reset', 'lost', 'poisoned', 'fresh'))
     and (closed_because is null or closed_because in
           ('prompt_changed', 'model_changed', 'provider_changed', 'context_full', 'expired', 'reset', 'lost', 'poisoned', 'fresh',
            'ended', 'campaign_closed'));
end
$body$;
comment on function
  dalsegno.is_consistent_session(text, integer, bigint, timestamptz, text, text, integer, integer, bigint, uuid, bigint, integer) is
  'The state machine: which columns of a session are set in which state.';

create function dalsegno.check_opened() returns trigger language plpgsql as $body$
declare
  broken text := case
    when new.agent_type !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'sessions_agent_form'
    when new.instance !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then 'sessions_instance_form'
    when char_length(new.provider) not between 1 and 50 then 'sessions_provider_length'
    when new.model = '' then 'sessions_model_not_empty'
    when new.prompt_hash !~ '^[0-9a-f]{64}$' then 'sessions_prompt_hash_form'
    when new.opened_because not in
      ('new', 'prompt_changed', 'model_changed', 'provider_changed', 'context_full', 'expired', 'reset', 'lost', 'poisoned', 'fresh')
      then 'sessions_opened_because_known'
    when octet_length(new.fence_seed) <> 32 then 'sessions_fence_seed_length'
  end;
begin
  if broken is not null then
    raise check_violation using constraint = broken, schema = tg_table_schema, table = tg_table_name,
      message = format('new row for relation "sessions" violates check constraint "%s"', broken);
  end if;
  return null;
end
$body$;
comment on function dalsegno.check_opened() is
  'What a session is opened with has to hold when it is opened, and if ever it is changed.';

alter table dalsegno.sessions
  drop constraint sessions_state_known,
  drop constraint sessions_agent_form,
  drop constraint sessions_instance_form,
  drop constraint sessions_provider_length,
  drop constraint sessions_model_not_empty,
  drop constraint sessions_prompt_hash_form,
  drop constraint sessions_opened_because_known,
  drop constraint sessions_rebuild_because_known,
  drop constraint sessions_closed_because_known,
  drop constraint sessions_fence_seed_length,
  drop constraint sessions_counters_not_negative,
  drop constraint sessions_generation_given_out,
  drop constraint sessions_state_machine,
  drop constraint sessions_head_complete,
  add constraint sessions_state_machine check (dalsegno.is_consistent_session(
    state, running_turn, lease, closed_at, closed_because, rebuild_because, generation, last_generation,
    least(token_count, context_tokens, last_seq, board_cursor, turn_count, generation), head, head_seq, head_generation));
create trigger sessions_opened
  after insert or update of agent_type, instance, provider, model, prompt_hash, opened_because, fence_seed
  on dalsegno.sessions for each row execute function dalsegno.check_opened();

------------------------------------------------------------------------------------------------ turns
create function dalsegno.is_consistent_turn(
  state text, number integer, ended_at timestamptz, error text, reserved_micros bigint, reserved_tokens bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return state in ('running', 'done', 'interrupted', 'failed')
     and number > 0
     and (state = 'running') = (ended_at is null)
     and (state in ('interrupted', 'failed')) = (error is not null)
     and reserved_micros >= 0 and reserved_tokens >= 0
     and (state = 'running' or (reserved_micros = 0 and reserved_tokens = 0));
end
$body$;
comment on function dalsegno.is_consistent_turn(text, integer, timestamptz, text, bigint, bigint) is
  'The state machine: which columns of a turn are set in which state.';

alter table dalsegno.turns
  drop constraint turns_session,
  drop constraint turns_number_positive,
  drop constraint turns_state_known,
  drop constraint turns_reserved_not_negative,
  drop constraint turns_state_machine,
  add constraint turns_state_machine check (
    dalsegno.is_consistent_turn(state, number, ended_at, error, reserved_micros, reserved_tokens));

------------------------------------------------------------------------------------------------ messages
create function dalsegno.is_consistent_message(
  role text, weight bigint, digest bytea, has_calls boolean, answers_call boolean)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return role in ('system', 'user', 'assistant', 'tool', 'notice')
     and weight >= 0
     and octet_length(digest) = 32
     and (not has_calls or role = 'assistant')
     and (role = 'tool') = answers_call;
end
$body$;
comment on function dalsegno.is_consistent_message(text, bigint, bytea, boolean, boolean) is
  'Which columns of a message are set for which role.';

alter table dalsegno.messages
  drop constraint messages_session,
  drop constraint messages_weight_not_negative,
  drop constraint messages_role_known,
  drop constraint messages_digest_length,
  drop constraint messages_tools_fit_role,
  add constraint messages_tools_fit_role check (
    dalsegno.is_consistent_message(role, weight, digest, tool_calls is not null, tool_call_id is not null));

------------------------------------------------------------------------------------------------ usage
create function dalsegno.is_consistent_call(purpose text, outcome text, least_count bigint)
  returns boolean language plpgsql immutable parallel safe as $body$
begin
  return purpose in ('turn', 'summary') and outcome in ('done', 'failed', 'interrupted') and least_count >= 0;
end
$body$;
comment on function dalsegno.is_consistent_call(text, text, bigint) is 'What a line of the ledger may say.';

alter table dalsegno.usage
  drop constraint usage_cost_not_negative,
  drop constraint usage_purpose_known,
  drop constraint usage_outcome_known,
  drop constraint usage_tokens_not_negative,
  add constraint usage_tokens_not_negative check (dalsegno.is_consistent_call(
    purpose, outcome, least(cost_micros, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens)));

------------------------------------------------------------------------------------------------ what belongs to a session
alter table dalsegno.manifests drop constraint manifests_session;

create function dalsegno.refuse_orphans() returns trigger language plpgsql as $body$
begin
  -- Whoever adds to a session has changed its row before, and waits for this removal or is waited for by it.
  if exists (select from dalsegno.messages as m where m.session_id = old.id)
     or exists (select from dalsegno.turns as t where t.session_id = old.id)
     or exists (select from dalsegno.manifests as m where m.session_id = old.id) then
    raise foreign_key_violation using
      message = format('session %s still has messages, turns or manifests', old.id),
      hint = 'Remove those first.';
  end if;
  return old;
end
$body$;
comment on function dalsegno.refuse_orphans() is 'No session goes before what belongs to it.';
create trigger sessions_go_last before delete on dalsegno.sessions
  for each row execute function dalsegno.refuse_orphans();

------------------------------------------------------------------------------------------------ long texts
-- A server may have been built without it; then texts are packed as before.
do $body$
begin
  alter table dalsegno.messages alter column text set compression lz4;
  alter table dalsegno.tasks alter column prompt set compression lz4, alter column result set compression lz4;
exception when feature_not_supported then
  raise notice 'this server has no lz4: long texts are packed by pglz';
end
$body$;

------------------------------------------------------------------------------------------------ what was spent without a limit
create table dalsegno.campaign_spending (
  campaign_id uuid not null constraint campaign_spending_campaign references dalsegno.campaigns (id),
  shard smallint not null,
  spent_micros bigint not null,
  spent_tokens bigint not null,
  constraint campaign_spending_pkey primary key (campaign_id, shard)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.campaign_spending is
  'What a campaign has spent without setting it aside before. Counts beside spent_micros and spent_tokens of '
  'dalsegno.campaign_budgets: a turn that needs no permission must not wait for the one row that gives it.';
comment on column dalsegno.campaign_spending.shard is
  'By the connection that adds, so that those who end a turn at the same moment do not wait for each other.';
