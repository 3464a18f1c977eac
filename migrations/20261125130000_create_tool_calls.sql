-- What models do with the tools of the service: the changes that a task has made, the tokens of turns, and agents in the audit log.

-- An attempt that repeats what an earlier one of its task has done finds it here, and does not do it again.
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
  'Changes that turns have made with tools, written in the transaction of the change. Only changes: what only reads is not here.';
comment on column dalsegno.tool_calls.task_id is 'The task whose turn called.';
comment on column dalsegno.tool_calls.session_id is 'Where; the row goes with it.';
comment on column dalsegno.tool_calls.lease is 'The last run that asked for this. A later one that asks for the same takes the row over, and nothing is done.';
comment on column dalsegno.tool_calls.called_at is 'When it was done.';
comment on column dalsegno.tool_calls.turn is 'The turn that did it.';
comment on column dalsegno.tool_calls.occurrence is 'Tells those apart that one attempt has asked for several times, from 0.';
comment on column dalsegno.tool_calls.digest is 'SHA-256 of the tool and its arguments.';
comment on column dalsegno.tool_calls.tool is 'Which one.';
comment on column dalsegno.tool_calls.answer is 'What the model was told: ids and names.';
create index tool_calls_by_session on dalsegno.tool_calls (session_id);
comment on index dalsegno.tool_calls_by_session is 'For the removal of sessions.';

create table dalsegno.turn_tokens (
  session_id uuid not null constraint turn_tokens_pkey primary key,
  minted_at timestamptz not null,
  turn integer not null,
  sha256 bytea not null constraint turn_tokens_sha256_length check (octet_length(sha256) = 32),
  constraint turn_tokens_turn foreign key (session_id, turn) references dalsegno.turns (session_id, number) on delete cascade
);
comment on table dalsegno.turn_tokens is
  'By what the child of a turn shows that it is this turn. Good while the turn runs and its job has the lease; the next turn of the session replaces it.';
comment on column dalsegno.turn_tokens.session_id is 'Of the turn. One runs at a time.';
comment on column dalsegno.turn_tokens.minted_at is 'When.';
comment on column dalsegno.turn_tokens.turn is 'Which turn of the session.';
comment on column dalsegno.turn_tokens.sha256 is 'Of the token, which is stored nowhere.';
create unique index turn_tokens_sha256 on dalsegno.turn_tokens (sha256);
comment on index dalsegno.turn_tokens_sha256 is 'What each request of a turn is looked up by.';

-- Older binaries write none of the new kind, and show any.
alter table dalsegno.audit drop constraint audit_actor_kind_known;
alter table dalsegno.audit add constraint audit_actor_kind_known
  check (actor_kind in ('key', 'admin_key', 'cli', 'system', 'anonymous', 'agent'));
comment on column dalsegno.audit.actor_kind is
  'key: a key of api_keys; admin_key: the one of the configuration; cli: a person at the command line; anonymous: nobody was asked; agent: a turn, by a tool.';
comment on column dalsegno.audit.actor is
  'The name of the key, user@host of the command line, or the agent as on the board; empty where there is none.';
