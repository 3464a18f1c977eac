-- Cleanups: the record of the nightly deletion by retention.

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
  events bigint not null default 0,
  memory_items bigint not null default 0,
  summaries_kept bigint not null default 0,
  summaries_removed bigint not null default 0,
  constraint cleanup_runs_end_complete check ((ended_at is null) = (outcome is null)),
  constraint cleanup_runs_job_complete check ((kind = 'sessions') = (job_id is not null) and (job_id is null) = (lease is null)),
  constraint cleanup_runs_not_negative check (least(sessions, messages, bytes, folders) >= 0),
  constraint cleanup_runs_events_not_negative check (events >= 0)
);
comment on table dalsegno.cleanup_runs is 'Numbers of removed and kept things: one row per run of the cleanup, updated while it runs.';
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
comment on column dalsegno.cleanup_runs.events is 'Events of the feed that were removed because of their age.';
comment on column dalsegno.cleanup_runs.memory_items is 'Items of memories that had been revoked or had expired long enough ago.';
comment on column dalsegno.cleanup_runs.summaries_kept is 'Expired sessions of which a summary was kept for their successors.';
comment on column dalsegno.cleanup_runs.summaries_removed is 'Kept summaries whose time was over.';

create unique index cleanup_runs_one_per_job on dalsegno.cleanup_runs (job_id) where job_id is not null;
comment on index dalsegno.cleanup_runs_one_per_job is 'An attempt finds the row of the one before.';
