-- Contexts of calls beside turns, for summaries and facts, so that they can be shown as they were sent.

create table dalsegno.usage_contexts (
  usage_id bigint not null,
  session_id uuid not null constraint usage_contexts_session references dalsegno.sessions (id) on delete cascade,
  manifest jsonb not null,
  constraint usage_contexts_pkey primary key (usage_id)
);
comment on table dalsegno.usage_contexts is
  'The context of each call for a summary or for facts, by its row of the ledger. It has no foreign key to the ledger, whose rows are never removed.';
comment on column dalsegno.usage_contexts.manifest is
  'The pieces of the call: hashes of stored texts, messages of the session, and text that is shorter than a hash.';

create index usage_contexts_by_session on dalsegno.usage_contexts (session_id, usage_id);
