-- The memory of a conversation outlives its session.
--
-- At the expiry of a session its successor begins with a summary, whichever comes first: the successor, or the cleanup that removes
-- the session. So whoever comes first stores what the summary is made of. A successor takes the row over; what no successor takes, a
-- cleanup removes some time after the expiry, and an erasure with the rest of its campaign.
--
-- An older binary neither writes nor reads it: its cleanup removes sessions without a trace, as before.
create table dalsegno.session_summaries (
  campaign_id uuid not null,
  session_id uuid not null,
  expired_at timestamptz not null,
  stored_at timestamptz not null,
  last_seq bigint not null,
  board_cursor bigint not null,
  context_tokens bigint not null,
  turn_count integer not null,
  interrupted boolean not null,
  agent text not null,
  instance text not null,
  rung text,
  model text,
  node text,
  summary text,
  pins jsonb not null default '[]',
  flow jsonb,
  prompts jsonb,
  excerpts jsonb not null default '[]',
  constraint session_summaries_pkey primary key (campaign_id, agent, instance),
  constraint session_summaries_not_empty check (summary is not null or excerpts <> '[]')
);
comment on table dalsegno.session_summaries is
  'What conversations remember whose session has expired: one row each, until a successor takes it over or its time is over.';
comment on column dalsegno.session_summaries.session_id is 'The session that has expired. It may be gone.';
comment on column dalsegno.session_summaries.expired_at is 'When the session expired. The time for which the summary is kept begins here.';
comment on column dalsegno.session_summaries.last_seq is 'Where a successor goes on counting messages; so turn_count, and board_cursor with the posts that it has seen.';
comment on column dalsegno.session_summaries.interrupted is 'The last turn was cut off.';
comment on column dalsegno.session_summaries.summary is 'The newest accepted summary of the session, word for word. NULL: there was none.';
comment on column dalsegno.session_summaries.pins is 'What a later summary has to keep of it word for word.';
comment on column dalsegno.session_summaries.flow is 'Where the work stood that the summary is about; node is its name.';
comment on column dalsegno.session_summaries.prompts is 'What people wrote that stood word for word beside that summary.';
comment on column dalsegno.session_summaries.excerpts is
  'What was said since that summary, shortened: the newest prompts and answers, and the first prompt. A successor makes an extract of it.';
-- Written by a cleanup for each session: the packing must not take longer than the removal.
do $body$
begin
  alter table dalsegno.session_summaries alter column excerpts set compression lz4, alter column summary set compression lz4;
exception when feature_not_supported then
  raise notice 'this server has no lz4: kept summaries are packed by pglz';
end
$body$;
create index session_summaries_by_expiry on dalsegno.session_summaries (expired_at);

alter table dalsegno.cleanup_runs add column summaries_kept bigint not null default 0,
  add column summaries_removed bigint not null default 0;
comment on column dalsegno.cleanup_runs.summaries_kept is 'Expired sessions of which a summary was kept for their successors.';
comment on column dalsegno.cleanup_runs.summaries_removed is 'Kept summaries whose time was over.';
