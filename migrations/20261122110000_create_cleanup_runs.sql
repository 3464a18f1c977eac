-- The record of the nightly cleanup, and how it finds what is due without reading what is not.

create table dalsegno.cleanup_runs (
  id bigint generated always as identity constraint cleanup_runs_pkey primary key,
  job_id bigint,
  lease bigint,
  started_at timestamptz not null,
  ended_at timestamptz,
  sessions bigint not null default 0,
  messages bigint not null default 0,
  bytes bigint not null default 0,
  folders bigint not null default 0,
  kind text not null constraint cleanup_runs_kind_known check (kind in ('sessions', 'folders')),
  outcome text constraint cleanup_runs_outcome_known check (outcome in ('done', 'cancelled', 'failed')),
  host text not null default '',
  removed jsonb not null default '[]',
  kept jsonb not null default '{}',
  constraint cleanup_runs_end_complete check ((ended_at is null) = (outcome is null)),
  constraint cleanup_runs_job_complete check ((kind = 'sessions') = (job_id is not null) and (job_id is null) = (lease is null)),
  constraint cleanup_runs_not_negative check (least(sessions, messages, bytes, folders) >= 0)
);
comment on table dalsegno.cleanup_runs is 'What the cleanup removed and what it kept: one row per run, written on while it runs.';
comment on column dalsegno.cleanup_runs.job_id is 'The job of a run over sessions. Another attempt of it writes on in the same row.';
comment on column dalsegno.cleanup_runs.lease is 'The run of the job that may write here.';
comment on column dalsegno.cleanup_runs.started_at is 'When its first attempt began.';
comment on column dalsegno.cleanup_runs.ended_at is 'NULL: it runs, or its worker was lost and the next attempt goes on.';
comment on column dalsegno.cleanup_runs.sessions is 'Sessions that were removed.';
comment on column dalsegno.cleanup_runs.messages is 'Their messages.';
comment on column dalsegno.cleanup_runs.bytes is 'Texts and stored transcripts of these sessions, or what the removed folders held.';
comment on column dalsegno.cleanup_runs.folders is 'Local folders of a host that were removed.';
comment on column dalsegno.cleanup_runs.kind is 'sessions: rows of the database; folders: files of one host.';
comment on column dalsegno.cleanup_runs.outcome is 'done, cancelled by a person, or failed for good.';
comment on column dalsegno.cleanup_runs.host is 'The host whose folders were removed.';
comment on column dalsegno.cleanup_runs.removed is 'Removed sessions by provider and reason.';
comment on column dalsegno.cleanup_runs.kept is 'Sessions whose time was over and that were kept all the same, by reason.';
create unique index cleanup_runs_one_per_job on dalsegno.cleanup_runs (job_id) where job_id is not null;
comment on index dalsegno.cleanup_runs_one_per_job is 'An attempt finds the row of the one before.';

-- Closed sessions are kept for a while after they have expired; a look for expired ones must not read through them each night.
drop index dalsegno.sessions_by_expiry;
create index sessions_open_by_expiry on dalsegno.sessions (expires_at, id) where closed_at is null;
create index sessions_by_closing on dalsegno.sessions (closed_at, id) where closed_at is not null;
comment on index dalsegno.sessions_open_by_expiry is 'What the cleanup walks along.';
comment on index dalsegno.sessions_by_closing is 'What the cleanup walks along.';

-- Whether somebody waits for a conversation is asked for each of them.
create index tasks_live_by_conversation on dalsegno.tasks (campaign_id, agent, instance) where ended_at is null;
comment on index dalsegno.tasks_live_by_conversation is 'The tasks of a conversation that have not ended.';
