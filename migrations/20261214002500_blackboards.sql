-- Blackboards: one JSON document per campaign, and every change to it.
--
-- A change that sets the document keeps all of it; one that merges keeps the patch, and at every 32nd version the document too, so that
-- any version is read back from at most 32 rows.

create table dalsegno.blackboards (
  campaign_id uuid not null
    constraint blackboards_pkey primary key
    constraint blackboards_campaign references dalsegno.campaigns (id),
  version bigint not null constraint blackboards_version_not_negative check (version >= 0),
  changed_at timestamptz not null,
  document jsonb not null constraint blackboards_document_object check (jsonb_typeof(document) = 'object')
);
comment on table dalsegno.blackboards is
  'The shared document of a campaign in its current version. A transaction that changes it holds its row.';
comment on column dalsegno.blackboards.campaign_id is 'The campaign; it has no row before its first change.';
comment on column dalsegno.blackboards.version is 'Counts the changes; 0 is the empty document without any change.';
comment on column dalsegno.blackboards.changed_at is 'When it was last changed.';
comment on column dalsegno.blackboards.document is 'An object. The service bounds its size, depth and number of values.';

create table dalsegno.blackboard_changes (
  campaign_id uuid not null constraint blackboard_changes_campaign references dalsegno.campaigns (id),
  version bigint not null constraint blackboard_changes_version_positive check (version > 0),
  changed_at timestamptz not null,
  task_id uuid,
  turn integer,
  bytes integer not null,
  kind text not null,
  actor text not null,
  agent text,
  paths text[] not null,
  patch jsonb,
  document jsonb,
  constraint blackboard_changes_pkey primary key (campaign_id, version),
  constraint blackboard_changes_kind_known check (kind in ('set', 'patch')),
  constraint blackboard_changes_complete check (
    (kind = 'patch') = (patch is not null)
    and (kind = 'patch' or document is not null)
    and (agent is not null or (task_id is null and turn is null)))
);
comment on table dalsegno.blackboard_changes is 'Every change of a blackboard, in order of its versions. Append-only.';
comment on column dalsegno.blackboard_changes.campaign_id is 'The campaign.';
comment on column dalsegno.blackboard_changes.version is 'The version that the change made.';
comment on column dalsegno.blackboard_changes.changed_at is 'When it was made.';
comment on column dalsegno.blackboard_changes.task_id is 'The task in whose turn an agent made it.';
comment on column dalsegno.blackboard_changes.turn is 'That turn.';
comment on column dalsegno.blackboard_changes.bytes is 'Length as JSON of the patch, or of the document that was set.';
comment on column dalsegno.blackboard_changes.kind is
  'set: the whole document was given; patch: a JSON Merge Patch (RFC 7396) was applied.';
comment on column dalsegno.blackboard_changes.actor is
  'Its author: an operator as in the audit log, or an agent by its name and instance.';
comment on column dalsegno.blackboard_changes.agent is 'The agent; NULL: an operator.';
comment on column dalsegno.blackboard_changes.paths is 'The differences to the version before, as JSON Pointers; the first hundred.';
comment on column dalsegno.blackboard_changes.patch is 'The patch.';
comment on column dalsegno.blackboard_changes.document is 'The document as it was then: for each that was set, and every 32nd version.';

create trigger blackboard_changes_append_only before update or delete or truncate on dalsegno.blackboard_changes
  for each statement execute function dalsegno.refuse_change();
