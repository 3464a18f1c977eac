-- Sessions: stretches of a conversation with one provider.
--
-- Invariants that constraints and indexes below hold:
--   * at most one open session per campaign, agent and instance: index sessions_one_open;
--   * a session is running exactly while it names the turn that runs and the lease it runs under.
--
-- Postgres parses the text of every CHECK of a table anew in every statement that writes to it. So columns that turns change are
-- checked by one function, compiled once per connection; columns that are settled when the row is made are checked by a trigger
-- when it is made, or when a statement names them. Both report the names of the rules as constraints.

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
comment on function dalsegno.is_consistent_session(text, integer, bigint, timestamptz, text, text, integer, integer, bigint, uuid, bigint, integer) is
  'The state machine: which columns of a session are set in which state.';

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
  state text not null default 'idle',
  agent_type varchar(100) not null,
  instance text not null default 'main',
  provider text not null,
  model varchar(100) not null,
  external_session_id varchar(255),
  prompt_hash text not null,
  opened_because text not null default 'new',
  rebuild_because text,
  closed_because text,
  fence_seed bytea not null,
  calibration jsonb,
  checkpoint jsonb,
  compaction_breaker jsonb,
  head uuid,
  head_seq bigint,
  head_generation integer,
  meter jsonb,
  login text,
  rejected_turns integer[] not null default '{}',
  constraint sessions_state_machine check (dalsegno.is_consistent_session(
    state, running_turn, lease, closed_at, closed_because, rebuild_because, generation, last_generation,
    least(token_count, context_tokens, last_seq, board_cursor, turn_count, generation), head, head_seq, head_generation))
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
comment on table dalsegno.sessions is
  'One stretch of a conversation with one provider. Its transcript is in dalsegno.messages; dalsegno.session_histories shows both '
  'together.';
comment on column dalsegno.sessions.opened_by_task is
  'The task that opened it. A second attempt of a task that wanted a fresh session finds it by this.';
comment on column dalsegno.sessions.expires_at is
  'Until then it is continued. Moved on by use, in steps of an hour: more often would rewrite its index on every turn.';
comment on column dalsegno.sessions.token_count is 'All tokens it has used so far. Grows; not what the context holds.';
comment on column dalsegno.sessions.context_tokens is 'Tokens of the window that the last call really occupied.';
comment on column dalsegno.sessions.lease is 'The lease of the run that has it or had it last. A run with a lower lease changes nothing.';
comment on column dalsegno.sessions.last_seq is 'The last place of the transcript that was given out. Goes on from the predecessor''s.';
comment on column dalsegno.sessions.board_cursor is 'The last post it has seen. Moves with the commit of a turn only.';
comment on column dalsegno.sessions.turn_count is 'The number of its latest turn. Goes on from the predecessor''s.';
comment on column dalsegno.sessions.generation is 'The compaction that is shown; 0 is the whole transcript.';
comment on column dalsegno.sessions.last_generation is 'The last generation number that was given out, side branches included.';
comment on column dalsegno.sessions.ephemeral is 'Made for one task that asked for no session; no later task continues it.';
comment on column dalsegno.sessions.external_session_id is 'The id the provider knows it by; NULL where the provider keeps no sessions.';
comment on column dalsegno.sessions.rebuild_because is 'Asks the next task to close it for this reason and to open a successor.';
comment on column dalsegno.sessions.fence_seed is 'Secret. Makes the fences around foreign text in its prompts.';
comment on column dalsegno.sessions.calibration is 'Parameters of its token estimates, learnt from real counts.';
comment on column dalsegno.sessions.checkpoint is 'Weight and real tokens of the last call.';
comment on column dalsegno.sessions.compaction_breaker is 'The turns in which a model was asked for a summary.';
comment on column dalsegno.sessions.head is
  'The provider''s name for the last answer that was committed: the place to go on from. NULL: the provider holds nothing that can be '
  'gone on from.';
comment on column dalsegno.sessions.head_seq is 'The last place of the transcript that the provider has heard by its head.';
comment on column dalsegno.sessions.head_generation is
  'The view that the provider''s transcript was written from. If another one is shown now, the transcript has to be rewritten.';
comment on column dalsegno.sessions.meter is 'The provider''s running totals at its head.';
comment on column dalsegno.sessions.login is 'The name of the login that it began on, and stays on.';
comment on column dalsegno.sessions.rejected_turns is
  'Turns whose messages stay in the transcript and are not sent again: the provider has rejected the prompt of their task, or one '
  'behind them before it had answered anything.';

-- The predicates name no column that a turn changes, so that the updates of a turn do not touch the indexes.
create unique index sessions_one_open on dalsegno.sessions (campaign_id, agent_type, instance) where closed_at is null and not ephemeral;
comment on index dalsegno.sessions_one_open is 'The guarantee: one conversation, one open session.';
create index sessions_by_campaign on dalsegno.sessions (campaign_id, agent_type, id desc);
create index sessions_by_task on dalsegno.sessions (opened_by_task) where ephemeral;
create index sessions_by_external_id on dalsegno.sessions (external_session_id) where external_session_id is not null;
create index sessions_open_by_expiry on dalsegno.sessions (expires_at, id) where closed_at is null;
comment on index dalsegno.sessions_open_by_expiry is 'Open sessions in the order in which the cleanup reads them.';
create index sessions_by_closing on dalsegno.sessions (closed_at, id) where closed_at is not null;
comment on index dalsegno.sessions_by_closing is 'Closed sessions in the order in which the cleanup reads them.';

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
comment on function dalsegno.check_opened() is 'Checks the settings of a session when it is opened, and when a statement changes them.';

create trigger sessions_opened
  after insert or update of agent_type, instance, provider, model, prompt_hash, opened_because, fence_seed
  on dalsegno.sessions for each row execute function dalsegno.check_opened();

---------------------------------------------------------------------------------------------- nodes
create table dalsegno.session_nodes (
  session_id uuid not null constraint session_nodes_session references dalsegno.sessions (id) on delete cascade,
  campaign_id uuid not null,
  task_id uuid not null,
  entered_at timestamptz not null,
  left_at timestamptz,
  first_seq bigint not null,
  last_seq bigint,
  entry_id uuid,
  ordinal integer not null constraint session_nodes_ordinal_positive check (ordinal > 0),
  agent text not null,
  instance text not null,
  node text not null constraint session_nodes_node_form check (node ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  constraint session_nodes_pkey primary key (session_id, ordinal),
  constraint session_nodes_left_complete check ((left_at is null) = (last_seq is null))
);
comment on table dalsegno.session_nodes is
  'The stays of a session at nodes of the work. The one that has not been left is where it stands.';
comment on column dalsegno.session_nodes.session_id is 'The session.';
comment on column dalsegno.session_nodes.campaign_id is 'Of the session: all stays of a campaign are its hand-offs.';
comment on column dalsegno.session_nodes.task_id is 'The task whose turn entered the node.';
comment on column dalsegno.session_nodes.first_seq is 'The place of the first message of the turn that entered.';
comment on column dalsegno.session_nodes.last_seq is 'The last place of the transcript when the session went on to another node.';
comment on column dalsegno.session_nodes.entry_id is
  'The message that said what the node asks for. NULL: a successor did not take it over, and its next turn says it again.';
comment on column dalsegno.session_nodes.ordinal is
  'Counts the stays of a session. A successor''s first one is that of its predecessor, with the same task and moment.';
comment on column dalsegno.session_nodes.node is 'The name of the node.';

create unique index session_nodes_one_current on dalsegno.session_nodes (session_id) where left_at is null;
create index session_nodes_by_campaign on dalsegno.session_nodes (campaign_id, entered_at);

------------------------------------------------------------------------------- external transcripts
-- Some providers keep the conversation themselves. The transcript is then the provider's own file, byte for byte. A turn stores what
-- it adds to the file, so that any host can go on; the files on the hosts are a cache.

create table dalsegno.transcript_files (
  session_id uuid not null constraint transcript_files_session references dalsegno.sessions (id),
  n_bytes bigint not null constraint transcript_files_size_not_negative check (n_bytes >= 0),
  name text not null,
  sha256 bytea not null constraint transcript_files_sha256_length check (octet_length(sha256) = 32),
  constraint transcript_files_pkey primary key (session_id, name)
);
comment on table dalsegno.transcript_files is 'The files of a provider''s transcript, as the last commit left them.';
comment on column dalsegno.transcript_files.name is 'Relative to the folder of the conversation, with / between its parts.';
comment on column dalsegno.transcript_files.sha256 is 'Of the whole file.';

create table dalsegno.transcript_chunks (
  session_id uuid not null,
  from_byte bigint not null constraint transcript_chunks_place_not_negative check (from_byte >= 0),
  name text not null,
  bytes bytea not null,
  constraint transcript_chunks_pkey primary key (session_id, name, from_byte),
  constraint transcript_chunks_file foreign key (session_id, name)
    references dalsegno.transcript_files (session_id, name) on delete cascade
);
comment on table dalsegno.transcript_chunks is 'The bytes that each turn added to a file. In the order of from_byte they are the file.';
