-- Conversations: campaigns, tasks, sessions with their turns and messages, and what they cost.
--
-- Invariants that constraints and indexes below hold:
--   * at most one open session per campaign, agent and instance: index sessions_one_open;
--   * a session is running exactly while it names the turn that runs and the lease it runs under;
--   * messages, usage, manifests and feed are append-only: trigger dalsegno.refuse_change();
--   * a provider's answer is charged once: index usage_once_per_answer.
-- A turn writes a fixed number of narrow rows, whatever the length of its conversation.
-- Money is in micro-units: 1,000,000 are one unit of the currency in the configuration.

------------------------------------------------------------------------------------------------ append-only
create function dalsegno.refuse_change() returns trigger language plpgsql as $body$
begin
  -- Retention and erasure announce themselves for the length of their transaction. A grant could not say this: the
  -- service owns its tables, and the owner may do anything.
  if tg_op = 'DELETE' and current_setting('dalsegno.erasing', true) = 'on' then
    return null;
  end if;
  raise exception using errcode = 'DS405',
    message = format('dalsegno.%s is append-only: %s refused', tg_table_name, lower(tg_op)),
    hint = 'What was said and what it cost stays as it was written. Retention and erasure set dalsegno.erasing = on in their own transaction.';
end
$body$;
comment on function dalsegno.refuse_change() is
  'Keeps a table append-only. One look per statement, so that appending costs nothing.';

------------------------------------------------------------------------------------------------ campaigns
create table dalsegno.campaigns (
  id uuid not null default gen_random_uuid() constraint campaigns_pkey primary key,
  created_at timestamptz not null default now(),
  closed_at timestamptz,
  status text not null default 'active'
    constraint campaigns_status_known check (status in ('active', 'paused', 'closed')),
  name text not null
    constraint campaigns_name_length check (char_length(name) between 1 and 200 and btrim(name) <> ''),
  brief text not null default ''
    constraint campaigns_brief_length check (octet_length(brief) <= 262144),
  client_context text
    constraint campaigns_client_context_length check (octet_length(client_context) <= 262144),
  constraint campaigns_closed_complete check ((status = 'closed') = (closed_at is not null))
);
comment on table dalsegno.campaigns is 'A piece of work for a client. Owns tasks, sessions and a budget.';
comment on column dalsegno.campaigns.status is
  'active; paused: tasks are taken in, none is started; closed: no more tasks.';
comment on column dalsegno.campaigns.brief is 'What the work is about. Goes into the system part of every call.';
comment on column dalsegno.campaigns.client_context is
  'Tone, audience and facts of the client. Goes into the system part of every call, never into a history.';

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
  'What a campaign may spend, has spent and has set aside for running turns. Apart from the campaign, because every turn '
  'rewrites this row and no turn rewrites a brief.';
comment on column dalsegno.campaign_budgets.limit_micros is 'Money, in micro-units. NULL: no limit.';
comment on column dalsegno.campaign_budgets.reserved_micros is
  'Set aside by turns that run. The share of each is on its row in dalsegno.turns, so that a lost turn gives it back.';

------------------------------------------------------------------------------------------------ tasks
create table dalsegno.tasks (
  id uuid not null constraint tasks_pkey primary key,
  campaign_id uuid not null constraint tasks_campaign references dalsegno.campaigns (id),
  job_id bigint not null,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  session_id uuid,
  turn integer,
  budget_micros bigint constraint tasks_budget_micros_positive check (budget_micros > 0),
  budget_tokens bigint constraint tasks_budget_tokens_positive check (budget_tokens > 0),
  spent_micros bigint not null default 0,
  spent_tokens bigint not null default 0,
  state text not null default 'queued'
    constraint tasks_state_known check (state in ('queued', 'running', 'done', 'failed', 'cancelled')),
  session_mode text not null default 'continue'
    constraint tasks_session_mode_known check (session_mode in ('continue', 'fresh', 'none')),
  agent text not null
    constraint tasks_agent_form check (agent ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  instance text not null default 'main'
    constraint tasks_instance_form check (instance ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  prompt text not null constraint tasks_prompt_not_empty check (btrim(prompt) <> ''),
  result text,
  error text,
  constraint tasks_spent_not_negative check (least(spent_micros, spent_tokens) >= 0),
  constraint tasks_state_machine check (
        (state in ('done', 'failed', 'cancelled')) = (ended_at is not null)
    and (state = 'done') = (result is not null)
    and (state = 'failed') = (error is not null)
    and (state <> 'running' or started_at is not null))
) with (fillfactor = 80);
comment on table dalsegno.tasks is
  'What somebody asked an agent to do in a campaign. Stays until it is erased; its job goes when it ends.';
comment on column dalsegno.tasks.job_id is
  'The job that runs it. Written in the transaction that enqueued it; another one after a retry of an ended task.';
comment on column dalsegno.tasks.session_id is 'The session it ran in last.';
comment on column dalsegno.tasks.turn is 'Its latest turn in that session.';
comment on column dalsegno.tasks.session_mode is
  'continue the open session; begin a fresh one; none: a session of its own that nobody continues.';
comment on column dalsegno.tasks.spent_micros is 'What all its attempts have cost, the failed ones too.';
create unique index tasks_one_per_job on dalsegno.tasks (job_id);
create index tasks_by_campaign on dalsegno.tasks (campaign_id, id desc);

------------------------------------------------------------------------------------------------ sessions
create table dalsegno.sessions (
  id uuid not null constraint sessions_pkey primary key,
  campaign_id uuid not null constraint sessions_campaign references dalsegno.campaigns (id),
  predecessor_id uuid,
  successor_id uuid,
  opened_by_task uuid,
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  expires_at timestamptz not null,
  closed_at timestamptz,
  token_count bigint not null default 0,
  context_tokens bigint not null default 0,
  lease bigint,
  last_seq bigint not null default 0,
  board_cursor bigint not null default 0,
  turn_count integer not null default 0,
  running_turn integer,
  generation integer not null default 0,
  last_generation integer not null default 0,
  ephemeral boolean not null default false,
  state text not null default 'idle'
    constraint sessions_state_known check (state in ('idle', 'running', 'interrupted', 'error', 'closed')),
  agent_type varchar(100) not null
    constraint sessions_agent_form check (agent_type ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  instance text not null default 'main'
    constraint sessions_instance_form check (instance ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  provider text not null constraint sessions_provider_length check (char_length(provider) between 1 and 50),
  model varchar(100) not null constraint sessions_model_not_empty check (model <> ''),
  external_session_id varchar(255),
  prompt_hash text not null constraint sessions_prompt_hash_form check (prompt_hash ~ '^[0-9a-f]{64}$'),
  opened_because text not null default 'new'
    constraint sessions_opened_because_known check (opened_because in
      ('new', 'prompt_changed', 'model_changed', 'provider_changed', 'context_full', 'expired', 'reset', 'lost', 'poisoned', 'fresh')),
  rebuild_because text
    constraint sessions_rebuild_because_known check (rebuild_because in ('context_full', 'reset', 'lost', 'poisoned', 'fresh')),
  closed_because text
    constraint sessions_closed_because_known check (closed_because in
      ('prompt_changed', 'model_changed', 'provider_changed', 'context_full', 'expired', 'reset', 'lost', 'poisoned', 'fresh',
       'ended', 'campaign_closed')),
  fence_seed bytea not null constraint sessions_fence_seed_length check (octet_length(fence_seed) = 32),
  calibration jsonb,
  checkpoint jsonb,
  compaction_breaker jsonb,
  constraint sessions_counters_not_negative
    check (least(token_count, context_tokens, last_seq, board_cursor, turn_count, generation) >= 0),
  constraint sessions_generation_given_out check (generation <= last_generation),
  constraint sessions_state_machine check (
        (state = 'closed') = (closed_at is not null)
    and (state = 'closed') = (closed_because is not null)
    and (state = 'running') = (running_turn is not null)
    and (running_turn is null or lease is not null))
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
comment on table dalsegno.sessions is
  'The conversation of one agent in one campaign. Its transcript is in dalsegno.messages; dalsegno.session_histories shows both together.';
comment on column dalsegno.sessions.external_session_id is 'The id the provider knows it by; NULL where the provider keeps no sessions.';
comment on column dalsegno.sessions.token_count is 'All tokens it has used so far. Grows; not what the context holds.';
comment on column dalsegno.sessions.context_tokens is 'What the last call really occupied of its window.';
comment on column dalsegno.sessions.expires_at is
  'Until then it is continued. Moved on by use, in steps of an hour: more often would rewrite its index on every turn.';
comment on column dalsegno.sessions.opened_by_task is
  'The task that opened it. A second attempt of a task that wanted a fresh session finds it by this.';
comment on column dalsegno.sessions.lease is 'The lease of the run that has it or had it last. A run with an older one changes nothing.';
comment on column dalsegno.sessions.last_seq is 'The last place of the transcript that was given out. Goes on from the predecessor''s.';
comment on column dalsegno.sessions.turn_count is 'The number of its latest turn. Goes on from the predecessor''s.';
comment on column dalsegno.sessions.generation is 'The compaction that is shown; 0 is the whole transcript.';
comment on column dalsegno.sessions.last_generation is 'The last generation number that was given out, side branches included.';
comment on column dalsegno.sessions.ephemeral is 'Made for one task that asked for no session; nobody continues it.';
comment on column dalsegno.sessions.rebuild_because is 'Asks the next task to close it for this reason and to open a successor.';
comment on column dalsegno.sessions.board_cursor is 'The last post it has seen. Moves with the commit of a turn only.';
comment on column dalsegno.sessions.fence_seed is 'Secret. Makes the fences around foreign text in its prompts.';
comment on column dalsegno.sessions.calibration is 'How tokens are estimated for it, learnt from real counts.';
comment on column dalsegno.sessions.checkpoint is 'Weight and real tokens of the last call.';
comment on column dalsegno.sessions.compaction_breaker is 'The turns in which a model was asked for a summary.';
-- The predicates name no column that a turn changes, so that a turn's updates stay off the indexes.
create unique index sessions_one_open on dalsegno.sessions (campaign_id, agent_type, instance)
  where closed_at is null and not ephemeral;
create index sessions_by_campaign on dalsegno.sessions (campaign_id, agent_type, id desc);
create index sessions_by_task on dalsegno.sessions (opened_by_task) where ephemeral;
create index sessions_by_external_id on dalsegno.sessions (external_session_id) where external_session_id is not null;
create index sessions_by_expiry on dalsegno.sessions (expires_at);
comment on index dalsegno.sessions_one_open is 'The guarantee: one conversation, one open session.';

------------------------------------------------------------------------------------------------ turns
create table dalsegno.turns (
  session_id uuid not null constraint turns_session references dalsegno.sessions (id),
  task_id uuid not null,
  number integer not null constraint turns_number_positive check (number > 0),
  attempt smallint not null,
  job_id bigint not null,
  lease bigint not null,
  started_at timestamptz not null,
  ended_at timestamptz,
  reserved_micros bigint not null default 0,
  reserved_tokens bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  cache_read_tokens bigint not null default 0,
  cache_creation_tokens bigint not null default 0,
  cost_micros bigint not null default 0,
  calls integer not null default 0,
  state text not null default 'running'
    constraint turns_state_known check (state in ('running', 'done', 'interrupted', 'failed')),
  flags text[] not null default '{}',
  error text,
  constraint turns_pkey primary key (session_id, number),
  constraint turns_reserved_not_negative check (least(reserved_micros, reserved_tokens) >= 0),
  constraint turns_state_machine check (
        (state = 'running') = (ended_at is null)
    and (state = 'running' or (reserved_micros = 0 and reserved_tokens = 0))
    and (state in ('interrupted', 'failed')) = (error is not null))
) with (fillfactor = 75);
comment on table dalsegno.turns is
  'One attempt of a task in a session: begun before the provider is called, ended once.';
comment on column dalsegno.turns.number is 'Counts the turns of a conversation, on from those of the predecessor.';
comment on column dalsegno.turns.lease is 'The run that may end it.';
comment on column dalsegno.turns.reserved_micros is 'Set aside of the campaign''s budget while it runs.';
comment on column dalsegno.turns.calls is 'Calls of a provider that are in dalsegno.usage.';
comment on column dalsegno.turns.flags is 'What a person should know of it, for instance that the provider''s counts did not fit the transcript.';
create index turns_by_task on dalsegno.turns (task_id, started_at);

------------------------------------------------------------------------------------------------ messages
create table dalsegno.messages (
  session_id uuid not null constraint messages_session references dalsegno.sessions (id),
  seq bigint not null,
  id uuid not null,
  created_at timestamptz not null,
  weight bigint not null constraint messages_weight_not_negative check (weight >= 0),
  turn integer not null,
  partial boolean not null default false,
  role text not null
    constraint messages_role_known check (role in ('system', 'user', 'assistant', 'tool', 'notice')),
  text text not null,
  tool_call_id text,
  tool_name text,
  digest bytea not null constraint messages_digest_length check (octet_length(digest) = 32),
  tool_calls jsonb,
  constraint messages_pkey primary key (session_id, seq),
  constraint messages_tools_fit_role check (
    (tool_calls is null or role = 'assistant') and (role = 'tool') = (tool_call_id is not null))
);
comment on table dalsegno.messages is
  'The transcript, append-only. Compaction changes which part of it is shown, never what is here.';
comment on column dalsegno.messages.seq is 'Place in the conversation, by time of commit. Gaps are allowed. A successor keeps the places of what it inherits.';
comment on column dalsegno.messages.id is 'Of a prompt: the id of its task, so that a second attempt does not say it twice.';
comment on column dalsegno.messages.weight is 'Estimate of its tokens before calibration, in thousandths, measured when it was written.';
comment on column dalsegno.messages.digest is 'SHA-256 of it, made when it was written.';
comment on column dalsegno.messages.turn is 'The turn that wrote it.';
comment on column dalsegno.messages.partial is 'The answer broke off: its turn was interrupted.';
comment on column dalsegno.messages.role is 'notice: words of the service itself.';
create unique index messages_one_prompt_per_task on dalsegno.messages (session_id, id) where role = 'user';
create trigger messages_append_only before update or delete or truncate on dalsegno.messages
  for each statement execute function dalsegno.refuse_change();

------------------------------------------------------------------------------------------------ usage
create table dalsegno.usage (
  id bigint generated always as identity constraint usage_pkey primary key,
  called_at timestamptz not null,
  campaign_id uuid not null,
  task_id uuid,
  session_id uuid,
  turn integer,
  cost_micros bigint not null constraint usage_cost_not_negative check (cost_micros >= 0),
  input_tokens bigint,
  output_tokens bigint,
  cache_read_tokens bigint,
  cache_creation_tokens bigint,
  first_byte_ms integer,
  total_ms integer,
  purpose text not null constraint usage_purpose_known check (purpose in ('turn', 'summary')),
  outcome text not null constraint usage_outcome_known check (outcome in ('done', 'failed', 'interrupted')),
  agent text not null,
  provider text not null,
  model text not null,
  provider_message_id text,
  price jsonb,
  constraint usage_tokens_not_negative
    check (least(input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens) >= 0)
);
comment on table dalsegno.usage is
  'The ledger: one row per call of a provider, failed ones too. It outlives what it paid for, so it refers to nothing by key.';
comment on column dalsegno.usage.input_tokens is 'NULL: the provider did not say.';
comment on column dalsegno.usage.price is 'The price list as it was at the time of the call; NULL: no price was configured.';
comment on column dalsegno.usage.provider_message_id is 'The provider''s own name for its answer; the same answer is charged once.';
create unique index usage_once_per_answer on dalsegno.usage (provider, provider_message_id)
  where provider_message_id is not null;
create index usage_by_campaign on dalsegno.usage (campaign_id, id);
create trigger usage_append_only before update or delete or truncate on dalsegno.usage
  for each statement execute function dalsegno.refuse_change();

------------------------------------------------------------------------------------------------ compactions
create table dalsegno.compactions (
  id bigint generated always as identity constraint compactions_pkey primary key,
  session_id uuid not null constraint compactions_session references dalsegno.sessions (id),
  from_seq bigint not null,
  to_seq bigint not null,
  tokens_before bigint not null,
  tokens_after bigint,
  created_at timestamptz not null,
  applied_at timestamptz,
  undone_at timestamptz,
  generation integer not null constraint compactions_generation_positive check (generation > 0),
  parent integer not null,
  turn integer not null,
  cause text not null
    constraint compactions_cause_known check (cause in ('auto', 'overflow', 'manual', 'inherited')),
  outcome text not null
    constraint compactions_outcome_known check (outcome in ('prepared', 'applied', 'stale', 'refused')),
  rung text,
  model text,
  summary text,
  pins jsonb not null default '[]',
  refusals jsonb not null default '[]',
  constraint compactions_lineage check (parent >= 0 and parent < generation and from_seq <= to_seq),
  constraint compactions_outcome_complete check (
        (outcome = 'refused') = (summary is null)
    and (outcome = 'refused') = (tokens_after is null)
    and (outcome = 'applied') = (applied_at is not null)
    and (undone_at is null or outcome = 'applied'))
);
comment on table dalsegno.compactions is
  'Summaries that stand in for older messages, and attempts that were refused. Nothing is taken out of dalsegno.messages.';
comment on column dalsegno.compactions.generation is 'Counts the compactions of a session. A refused one uses up its number.';
comment on column dalsegno.compactions.parent is 'The generation whose view was folded; 0 is the whole transcript.';
comment on column dalsegno.compactions.turn is 'How many turns the session had.';
comment on column dalsegno.compactions.outcome is
  'prepared: good, not shown yet; applied: shown, now or once; stale: the view changed before it was applied; refused: no summary was good enough.';
comment on column dalsegno.compactions.rung is 'Where the summary came from: first, retry, alternate, extract.';
comment on column dalsegno.compactions.pins is 'What the summary had to keep word for word.';
comment on column dalsegno.compactions.refusals is 'Summaries that were not good enough, with the reasons.';
comment on column dalsegno.compactions.undone_at is 'When a person went back to the view before it.';
create unique index compactions_one_per_generation on dalsegno.compactions (session_id, generation);

------------------------------------------------------------------------------------------------ manifests
create table dalsegno.manifests (
  session_id uuid not null constraint manifests_session references dalsegno.sessions (id),
  turn integer not null,
  call smallint not null,
  created_at timestamptz not null,
  estimated_tokens bigint not null,
  real_tokens bigint,
  sha256 bytea not null constraint manifests_sha256_length check (octet_length(sha256) = 32),
  manifest jsonb not null,
  constraint manifests_pkey primary key (session_id, turn, call)
);
comment on table dalsegno.manifests is
  'What exactly was sent in a call: ids, hashes and why each part was in or out. Its size does not grow with the transcript.';
comment on column dalsegno.manifests.call is 'Counts the calls of a turn from 0.';
comment on column dalsegno.manifests.real_tokens is 'The provider''s own count of the prompt, if it said.';
create trigger manifests_append_only before update or delete or truncate on dalsegno.manifests
  for each statement execute function dalsegno.refuse_change();

------------------------------------------------------------------------------------------------ feed
create table dalsegno.feed (
  -- In front of id: a row draws its transaction number before its id, and readers rely on that order.
  written_by xid8 not null default pg_current_xact_id(),
  id bigint generated always as identity constraint feed_pkey primary key,
  created_at timestamptz not null,
  campaign_id uuid,
  task_id uuid,
  session_id uuid,
  kind text not null constraint feed_kind_length check (char_length(kind) between 1 and 60),
  data jsonb not null default '{}'
);
comment on table dalsegno.feed is 'The operator''s log of what happened. Not the transcript: no prompt and no answer is in it.';
comment on column dalsegno.feed.written_by is
  'The transaction. Ids of transactions that are still open can be missing below an id that is already visible.';
create index feed_by_campaign on dalsegno.feed (campaign_id, id) where campaign_id is not null;
create trigger feed_append_only before update or delete or truncate on dalsegno.feed
  for each statement execute function dalsegno.refuse_change();

------------------------------------------------------------------------------------------------ histories
create view dalsegno.session_histories as
  select s.id, s.external_session_id, s.agent_type, s.campaign_id, s.model,
         case when c.summary is null then '[]'
              else jsonb_build_array(jsonb_build_object('role', 'system', 'content', c.summary)) end
         || coalesce((
              select jsonb_agg(
                       jsonb_build_object('role', case m.role when 'notice' then 'system' else m.role end, 'content', m.text)
                       || case when m.tool_calls is null then '{}' else jsonb_build_object('tool_calls', m.tool_calls) end
                       || case when m.tool_call_id is null then '{}'
                               else jsonb_build_object('tool_call_id', m.tool_call_id, 'tool_name', m.tool_name) end
                       order by m.seq)
                from dalsegno.messages as m
               where m.session_id = s.id and m.seq > coalesce(c.to_seq, 0)), '[]') as message_history,
         s.token_count, s.expires_at, s.created_at,
         s.instance, s.provider, s.state, s.generation
    from dalsegno.sessions as s
    left join dalsegno.compactions as c on c.session_id = s.id and c.generation = s.generation;
comment on view dalsegno.session_histories is
  'Sessions with their history as one JSON array, for other systems: the summary, if any, as a system message, then what was said since.';
