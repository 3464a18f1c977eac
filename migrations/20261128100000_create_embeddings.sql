-- Vectors that a model has made of what is kept in memories and of facts: what is near to a question in meaning is found by them.
--
-- Invariants:
--   * there is one vector of an item or a fact at most, and it goes with what it was made of: no erasure and no retention has to know it;
--   * the vector of an item names the version that it was made of: one of an earlier version finds nothing;
--   * vectors are arrays of the server itself, so that the schema does not need the extension that compares them.
create table dalsegno.memory_embeddings (
  item_id uuid not null
    constraint memory_embeddings_item references dalsegno.memory_items (id) on delete cascade,
  made_at timestamptz not null,
  version integer not null,
  model text not null,
  vector real[] not null,
  constraint memory_embeddings_pkey primary key (item_id) include (version, model)
);
comment on table dalsegno.memory_embeddings is 'What a model makes of the meaning of items, where embeddings are on.';
comment on column dalsegno.memory_embeddings.item_id is 'The item.';
comment on column dalsegno.memory_embeddings.made_at is 'When it was made.';
comment on column dalsegno.memory_embeddings.version is 'The version of the item that it was made of.';
comment on column dalsegno.memory_embeddings.model is 'The model that made it. Vectors of two models cannot be compared.';
comment on column dalsegno.memory_embeddings.vector is 'The vector. Empty: the model refuses this text, and is not asked again.';

create table dalsegno.fact_embeddings (
  fact_id uuid not null
    constraint fact_embeddings_fact references dalsegno.facts (id) on delete cascade,
  made_at timestamptz not null,
  model text not null,
  vector real[] not null,
  constraint fact_embeddings_pkey primary key (fact_id) include (model)
);
comment on table dalsegno.fact_embeddings is 'The same of facts.';
comment on column dalsegno.fact_embeddings.fact_id is 'The fact. What it says never changes.';
comment on column dalsegno.fact_embeddings.made_at is 'When it was made.';
comment on column dalsegno.fact_embeddings.model is 'The model that made it.';
comment on column dalsegno.fact_embeddings.vector is 'The vector. Empty: the model refuses this text, and is not asked again.';

-- Beside the row as far as a page has room: a search reads very many of them.
alter table dalsegno.memory_embeddings alter column vector set storage main;
alter table dalsegno.fact_embeddings alter column vector set storage main;
