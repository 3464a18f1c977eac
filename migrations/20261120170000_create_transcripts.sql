-- Conversations that their provider keeps itself: where they stand, their transcripts, and logins that rest.
--
-- A transcript is the provider's own file, byte for byte. What a turn adds to it is written with the turn, so that any host
-- can go on; the files on the hosts are a cache of it.

alter table dalsegno.sessions
  add column head uuid,
  add column head_seq bigint,
  add column head_generation integer,
  add column meter jsonb,
  add column login text,
  add constraint sessions_head_complete
    check ((head is null) = (head_seq is null) and (head is null) = (head_generation is null));
comment on column dalsegno.sessions.head is
  'The provider''s name for the last answer that was committed: the place to go on from. NULL: the provider holds nothing that can be gone on from.';
comment on column dalsegno.sessions.head_seq is 'The last place of the transcript that the provider has heard by its head.';
comment on column dalsegno.sessions.head_generation is
  'The view that the provider''s transcript was written from. Another one is shown now: then it has to be written anew.';
comment on column dalsegno.sessions.meter is 'The provider''s running totals at its head.';
comment on column dalsegno.sessions.login is 'The name of the login that it began on, and stays on.';

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
comment on table dalsegno.transcript_chunks is 'What each turn added to a file. In the order of from_byte they are the file.';

create table dalsegno.resting_logins (
  provider text not null,
  login text not null,
  until timestamptz not null,
  why text not null,
  constraint resting_logins_pkey primary key (provider, login)
);
comment on table dalsegno.resting_logins is
  'Logins whose limit is used up. All conversations on them wait, and new ones begin on others.';
