-- The output of a running turn, stored while it arrives: an attempt after a lost worker is shown it.

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
  'What has arrived of the answer of a running turn, at most about a second behind. The end of the turn removes it; a lost turn '
  'has it moved to dalsegno.messages.';
comment on column dalsegno.partial_outputs.session_id is 'Of the turn. One runs at a time.';
comment on column dalsegno.partial_outputs.written_at is 'When it was written last: at most once a second.';
comment on column dalsegno.partial_outputs.weight is 'As of a message.';
comment on column dalsegno.partial_outputs.turn is 'Which turn of the session.';
comment on column dalsegno.partial_outputs.digest is 'As of a message.';
comment on column dalsegno.partial_outputs.text is 'What has arrived, or the end of it where that is long.';
