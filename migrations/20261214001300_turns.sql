-- Turns: attempts of tasks inside a session, their access tokens, and the output and tool calls of a running turn.
--
-- Rows that a turn adds to a session follow a change of the session's own row in the same transaction. So the session exists, and
-- no other transaction can remove it: turns, messages and manifests need no foreign key, which would look for it again and lock it
-- again. The trigger sessions_go_last refuses to remove a session before its rows.

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

create table dalsegno.turns (
  session_id uuid not null,
  task_id uuid not null,
  number integer not null,
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
  state text not null default 'running',
  flags text[] not null default '{}',
  error text,
  constraint turns_pkey primary key (session_id, number),
  constraint turns_state_machine check (
    dalsegno.is_consistent_turn(state, number, ended_at, error, reserved_micros, reserved_tokens))
) with (fillfactor = 75);
comment on table dalsegno.turns is 'One attempt of a task in a session: begun before the provider is called, ended once.';
comment on column dalsegno.turns.number is 'Counts the turns of a conversation, on from those of the predecessor.';
comment on column dalsegno.turns.lease is 'The run that may end it.';
comment on column dalsegno.turns.reserved_micros is 'Set aside of the campaign''s budget while it runs.';
comment on column dalsegno.turns.calls is 'Calls of a provider that are in dalsegno.usage.';
comment on column dalsegno.turns.flags is 'Notes for people, for instance that the provider''s counts did not fit the transcript.';

create index turns_by_task on dalsegno.turns (task_id, started_at);

-- States of sessions and agents over time, read from the rows that turns, sessions and pauses leave anyway.
create view dalsegno.session_states as
  select s.campaign_id, s.agent_type as agent, s.instance, s.id as session_id, e.turn, e.at, e.place, e.state, e.because
    from dalsegno.sessions as s
   cross join lateral (
     select null::integer as turn, s.created_at as at, 0::bigint as place, 'idle' as state, s.opened_because as because
      union all
     select t.number, t.started_at, t.number::bigint * 2, 'running', null from dalsegno.turns as t where t.session_id = s.id
      union all
     select t.number, t.ended_at, t.number::bigint * 2 + 1,
            case t.state when 'done' then 'idle' when 'failed' then 'error' else 'interrupted' end, t.error
       from dalsegno.turns as t where t.session_id = s.id and t.ended_at is not null
      union all
     select null, s.closed_at, 9223372036854775807, 'closed', s.closed_because where s.closed_at is not null) as e;
comment on view dalsegno.session_states is
  'Each state that a session has had, from when on and why; place is their order within the session. A turn that failed after it had '
  'used tools reads error here, while the row of the session says interrupted, because the next turn is told so.';

--------------------------------------------------------------------------------------------- tokens
create table dalsegno.turn_tokens (
  session_id uuid not null constraint turn_tokens_pkey primary key,
  minted_at timestamptz not null,
  turn integer not null,
  sha256 bytea not null constraint turn_tokens_sha256_length check (octet_length(sha256) = 32),
  constraint turn_tokens_turn foreign key (session_id, turn) references dalsegno.turns (session_id, number) on delete cascade
);
comment on table dalsegno.turn_tokens is
  'Access tokens of turns: a child process proves with one which turn it belongs to. Valid while the turn runs and its job has the '
  'lease; the next turn of the session replaces it.';
comment on column dalsegno.turn_tokens.session_id is 'Of the turn. One runs at a time.';
comment on column dalsegno.turn_tokens.minted_at is 'When it was made.';
comment on column dalsegno.turn_tokens.turn is 'Which turn of the session.';
comment on column dalsegno.turn_tokens.sha256 is 'Of the token, which is stored nowhere.';

create unique index turn_tokens_sha256 on dalsegno.turn_tokens (sha256);
comment on index dalsegno.turn_tokens_sha256 is 'The look-up of each request of a turn.';

-------------------------------------------------------------------------------------- running turns
create table dalsegno.partial_outputs (
  session_id uuid not null constraint partial_outputs_pkey primary key,
  written_at timestamptz not null,
  weight bigint not null constraint partial_outputs_weight_not_negative check (weight >= 0),
  turn integer not null,
  digest bytea not null constraint partial_outputs_digest_length check (octet_length(digest) = 32),
  text text not null constraint partial_outputs_text_length check (octet_length(text) <= 65536),
  constraint partial_outputs_turn foreign key (session_id, turn) references dalsegno.turns (session_id, number) on delete cascade
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
comment on table dalsegno.partial_outputs is
  'The part of the answer of a running turn that has arrived, at most about a second behind. The end of the turn removes it; after a '
  'lost turn it is moved to dalsegno.messages.';
comment on column dalsegno.partial_outputs.session_id is 'Of the turn. One runs at a time.';
comment on column dalsegno.partial_outputs.written_at is 'When it was written last: at most once a second.';
comment on column dalsegno.partial_outputs.weight is 'As of a message.';
comment on column dalsegno.partial_outputs.turn is 'Which turn of the session.';
comment on column dalsegno.partial_outputs.digest is 'As of a message.';
comment on column dalsegno.partial_outputs.text is 'The text that has arrived, or the end of it if that is long.';

-- An attempt that repeats a request of an earlier attempt of its task finds it here, and does not carry it out again.
create table dalsegno.tool_calls (
  task_id uuid not null,
  session_id uuid not null constraint tool_calls_session references dalsegno.sessions (id) on delete cascade,
  lease bigint not null,
  called_at timestamptz not null,
  turn integer not null constraint tool_calls_turn_positive check (turn > 0),
  occurrence integer not null constraint tool_calls_occurrence_not_negative check (occurrence >= 0),
  digest bytea not null constraint tool_calls_digest_length check (octet_length(digest) = 32),
  tool text not null,
  answer text not null,
  constraint tool_calls_pkey primary key (task_id, digest, occurrence)
);
comment on table dalsegno.tool_calls is
  'Changes that turns have made with tools, written in the transaction of the change. Reads are not stored.';
comment on column dalsegno.tool_calls.task_id is 'The task whose turn called.';
comment on column dalsegno.tool_calls.session_id is 'Where; the row goes with it.';
comment on column dalsegno.tool_calls.lease is
  'The last run that asked for this. A later run that asks for the same takes the row over, and the change is not repeated.';
comment on column dalsegno.tool_calls.called_at is 'When it was done.';
comment on column dalsegno.tool_calls.turn is 'The turn that did it.';
comment on column dalsegno.tool_calls.occurrence is 'Numbers equal requests of one attempt, from 0.';
comment on column dalsegno.tool_calls.digest is 'SHA-256 of the tool and its arguments.';
comment on column dalsegno.tool_calls.tool is 'The name of the tool.';
comment on column dalsegno.tool_calls.answer is 'The answer to the model: ids and names.';

create index tool_calls_by_session on dalsegno.tool_calls (session_id);
comment on index dalsegno.tool_calls_by_session is 'For the removal of sessions.';
