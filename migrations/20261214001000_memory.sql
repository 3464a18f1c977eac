-- Memory: what people and agents of a campaign keep for later. Edicts hold for all agents, records are shared knowledge, a journal
-- holds one agent's own notes.
--
-- Invariants:
--   * an item has its current version in its own row, and each replaced version in memory_versions, which is append-only;
--   * an entry of a journal is never replaced;
--   * only retention and erasure delete: items that should not hold any more are revoked, or expire.
--
-- `search` has the words as they are, so that a change of the configured language loses nothing, and their stems in the language that
-- was configured when the item was written. The campaign stands in it as a word that no text has (no parser makes one that begins
-- with a colon), so that one index finds the words of a campaign without the extension btree_gin.

create table dalsegno.memory_items (
  id uuid not null constraint memory_items_pkey primary key,
  campaign_id uuid not null constraint memory_items_campaign references dalsegno.campaigns (id),
  created_at timestamptz not null,
  written_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  task_id uuid,
  version integer not null constraint memory_items_version_positive check (version > 0),
  turn integer,
  bytes integer not null generated always as (octet_length(title) + octet_length(body)) stored,
  kind text not null constraint memory_items_kind_known check (kind in ('edict', 'record', 'journal')),
  owner text collate "C" not null default '' constraint memory_items_owner_length check (char_length(owner) <= 129),
  name text collate "C" not null constraint memory_items_name_form check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  origin text not null constraint memory_items_origin_known check (origin in ('operator', 'agent')),
  author text not null,
  trust text not null constraint memory_items_trust_known check (trust in ('operator', 'agent', 'imported')),
  revoked_by text,
  language text not null default 'simple'
    constraint memory_items_language_known check (language in ('simple', 'danish', 'dutch', 'english', 'finnish', 'french', 'german',
      'hungarian', 'italian', 'norwegian', 'portuguese', 'romanian', 'russian', 'spanish', 'swedish', 'turkish')),
  title text not null constraint memory_items_title_length check (char_length(title) between 1 and 200),
  body text not null constraint memory_items_body_length check (octet_length(body) between 1 and 131072),
  search tsvector not null generated always as (
    setweight(to_tsvector('simple', title || ' ' || translate(name, '-_', '  ')), 'A')
    || to_tsvector('simple', body)
    || case language
        when 'danish' then to_tsvector('danish', title || ' ' || body)
        when 'dutch' then to_tsvector('dutch', title || ' ' || body)
        when 'english' then to_tsvector('english', title || ' ' || body)
        when 'finnish' then to_tsvector('finnish', title || ' ' || body)
        when 'french' then to_tsvector('french', title || ' ' || body)
        when 'german' then to_tsvector('german', title || ' ' || body)
        when 'hungarian' then to_tsvector('hungarian', title || ' ' || body)
        when 'italian' then to_tsvector('italian', title || ' ' || body)
        when 'norwegian' then to_tsvector('norwegian', title || ' ' || body)
        when 'portuguese' then to_tsvector('portuguese', title || ' ' || body)
        when 'romanian' then to_tsvector('romanian', title || ' ' || body)
        when 'russian' then to_tsvector('russian', title || ' ' || body)
        when 'spanish' then to_tsvector('spanish', title || ' ' || body)
        when 'swedish' then to_tsvector('swedish', title || ' ' || body)
        when 'turkish' then to_tsvector('turkish', title || ' ' || body)
        else ''::tsvector
      end
    || array_to_tsvector(array[':' || campaign_id::text])
  ) stored,
  constraint memory_items_name_unique unique (campaign_id, kind, owner, name),
  constraint memory_items_owner_fits_kind check ((kind = 'journal') = (owner <> '')),
  constraint memory_items_journal_unchanged check (kind <> 'journal' or version = 1),
  constraint memory_items_turn_fits_origin check (origin = 'agent' or (task_id is null and turn is null)),
  constraint memory_items_revoked_complete check ((revoked_at is null) = (revoked_by is null))
);
comment on table dalsegno.memory_items is 'Edicts, records and entries of journals of a campaign, each in its current version.';
comment on column dalsegno.memory_items.id is 'Stays the same in all versions.';
comment on column dalsegno.memory_items.campaign_id is 'The campaign.';
comment on column dalsegno.memory_items.created_at is 'When its first version was written.';
comment on column dalsegno.memory_items.written_at is 'When this version was.';
comment on column dalsegno.memory_items.expires_at is 'From when on it holds no more.';
comment on column dalsegno.memory_items.revoked_at is 'Since when it holds no more.';
comment on column dalsegno.memory_items.task_id is 'The task in whose turn an agent wrote this version.';
comment on column dalsegno.memory_items.version is 'Counts the versions from 1.';
comment on column dalsegno.memory_items.turn is 'That turn.';
comment on column dalsegno.memory_items.bytes is 'Of title and body.';
comment on column dalsegno.memory_items.kind is
  'edict: a rule for all; record: what all know; journal: an entry of one agent''s own notes.';
comment on column dalsegno.memory_items.owner is 'Owner of the journal, by its name on the board; empty for items of all.';
comment on column dalsegno.memory_items.name is 'Its name, in the form of an agent''s name, so that it can stand in paths and addresses.';
comment on column dalsegno.memory_items.origin is 'operator: a person; agent: a turn. Derived from the author, never from the text.';
comment on column dalsegno.memory_items.author is
  'Author of this version: an operator as in the audit log, or an agent by its name on the board.';
comment on column dalsegno.memory_items.trust is
  'operator: a person vouches for it; agent: a model wrote it; imported: a person took it in from a file.';
comment on column dalsegno.memory_items.revoked_by is 'The person or agent that revoked it, written as the author is.';
comment on column dalsegno.memory_items.language is 'The text search configuration that stems were made with; simple: none.';
comment on column dalsegno.memory_items.title is 'One line that says what it is about.';
comment on column dalsegno.memory_items.body is 'Its text. The service allows less than the constraint.';
comment on column dalsegno.memory_items.search is 'Words, stems and the campaign; see above.';

create index memory_items_search on dalsegno.memory_items using gin (search) with (fastupdate = off);
create index memory_items_by_campaign on dalsegno.memory_items (campaign_id, id);
create index memory_items_edicts on dalsegno.memory_items (campaign_id, created_at, id) where kind = 'edict' and revoked_at is null;
-- The text of an agent counts as long as it is stored, so also if it was revoked or has expired.
create index memory_items_by_author on dalsegno.memory_items (campaign_id, author) include (bytes) where origin = 'agent';
create index memory_items_ended on dalsegno.memory_items ((least(revoked_at, expires_at)))
  where revoked_at is not null or expires_at is not null;

create table dalsegno.memory_versions (
  item_id uuid not null constraint memory_versions_item references dalsegno.memory_items (id),
  campaign_id uuid not null,
  written_at timestamptz not null,
  task_id uuid,
  version integer not null constraint memory_versions_version_positive check (version > 0),
  turn integer,
  origin text not null constraint memory_versions_origin_known check (origin in ('operator', 'agent')),
  author text not null,
  trust text not null constraint memory_versions_trust_known check (trust in ('operator', 'agent', 'imported')),
  title text not null,
  body text not null,
  constraint memory_versions_pkey primary key (item_id, version)
);
comment on table dalsegno.memory_versions is 'Versions of items that were replaced, as they were. Append-only.';
comment on column dalsegno.memory_versions.item_id is 'The item.';
comment on column dalsegno.memory_versions.campaign_id is 'Its campaign.';
comment on column dalsegno.memory_versions.written_at is 'When this version was written.';
comment on column dalsegno.memory_versions.task_id is 'The task in whose turn an agent wrote it.';
comment on column dalsegno.memory_versions.version is 'Its number.';
comment on column dalsegno.memory_versions.turn is 'That turn.';
comment on column dalsegno.memory_versions.origin is 'As of the item.';
comment on column dalsegno.memory_versions.author is 'Its author.';
comment on column dalsegno.memory_versions.trust is 'As of the item.';
comment on column dalsegno.memory_versions.title is 'Its title.';
comment on column dalsegno.memory_versions.body is 'Its text.';

create index memory_versions_by_author on dalsegno.memory_versions (campaign_id, author) where origin = 'agent';

create trigger memory_versions_append_only before update or delete or truncate on dalsegno.memory_versions
  for each statement execute function dalsegno.refuse_change();

----------------------------------------------------------------------------------------- embeddings
-- Vectors of items, for search by meaning. There is at most one vector of an item, and it goes with the item: no erasure and no
-- retention has to know it. It names the version that it was made of; a vector of an earlier version finds nothing. Vectors are
-- arrays of the server itself, so that the schema does not need the extension that compares them.

create table dalsegno.memory_embeddings (
  item_id uuid not null constraint memory_embeddings_item references dalsegno.memory_items (id) on delete cascade,
  made_at timestamptz not null,
  version integer not null,
  model text not null,
  vector real[] not null,
  constraint memory_embeddings_pkey primary key (item_id) include (version, model)
);
comment on table dalsegno.memory_embeddings is 'Vectors of items, if embeddings are on.';
comment on column dalsegno.memory_embeddings.item_id is 'The item.';
comment on column dalsegno.memory_embeddings.made_at is 'When it was made.';
comment on column dalsegno.memory_embeddings.version is 'The version of the item that it was made of.';
comment on column dalsegno.memory_embeddings.model is 'The model that made it. Vectors of two models cannot be compared.';
comment on column dalsegno.memory_embeddings.vector is 'The vector. Empty: the model refuses this text, and is not asked again.';

-- In the row as far as a page has room: a search reads very many of them.
alter table dalsegno.memory_embeddings alter column vector set storage main;
