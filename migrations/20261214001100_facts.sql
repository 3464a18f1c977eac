-- Facts about users: statements that users of campaigns have made about themselves.
--
-- Invariants:
--   * one fact is valid at a time for each attribute of a user, and no two valid facts say the same: unique indexes;
--   * a fact that is contradicted is closed by its time, and never overwritten;
--   * only retention, erasure and forgetting a user delete.
--
-- `search` has the words, their stems and the user, as that of memory_items has the campaign. Neither a fact nor a record of a reading
-- has a foreign key to a session: they stay when it goes.

create table dalsegno.campaign_users (
  campaign_id uuid not null
    constraint campaign_users_pkey primary key
    constraint campaign_users_campaign references dalsegno.campaigns (id),
  since timestamptz not null,
  user_name text collate "C" not null constraint campaign_users_name_form check (user_name ~ '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$')
);
comment on table dalsegno.campaign_users is 'The user for whom a campaign works, if facts about that user are kept.';
comment on column dalsegno.campaign_users.campaign_id is 'The campaign.';
comment on column dalsegno.campaign_users.since is 'Requests from before this moment are not read for facts.';
comment on column dalsegno.campaign_users.user_name is
  'The user''s name in the other systems. The same name in two campaigns is the same user.';

create index campaign_users_by_name on dalsegno.campaign_users (user_name);

create table dalsegno.facts (
  id uuid not null constraint facts_pkey primary key,
  campaign_id uuid,
  session_id uuid,
  task_id uuid,
  replaced_by uuid,
  recorded_at timestamptz not null,
  valid_from timestamptz not null,
  valid_until timestamptz,
  expires_at timestamptz,
  turn integer,
  user_name text collate "C" not null constraint facts_user_name_form check (user_name ~ '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$'),
  source text not null constraint facts_source_known check (source in ('extracted', 'stated', 'edited')),
  trust text not null constraint facts_trust_known check (trust in ('operator', 'agent')),
  author text not null,
  ended_because text constraint facts_ended_because_known check (ended_because in ('contradicted', 'edited', 'revoked')),
  language text not null default 'simple'
    constraint facts_language_known check (language in ('simple', 'danish', 'dutch', 'english', 'finnish', 'french', 'german',
      'hungarian', 'italian', 'norwegian', 'portuguese', 'romanian', 'russian', 'spanish', 'swedish', 'turkish')),
  attribute text not null constraint facts_attribute_length check (char_length(attribute) between 1 and 100),
  attribute_key text collate "C" not null,
  text text not null constraint facts_text_length check (char_length(text) between 1 and 400),
  text_key text collate "C" not null,
  search tsvector not null generated always as (
    setweight(to_tsvector('simple', attribute), 'A')
    || to_tsvector('simple', text)
    || case language
        when 'danish' then to_tsvector('danish', attribute || ' ' || text)
        when 'dutch' then to_tsvector('dutch', attribute || ' ' || text)
        when 'english' then to_tsvector('english', attribute || ' ' || text)
        when 'finnish' then to_tsvector('finnish', attribute || ' ' || text)
        when 'french' then to_tsvector('french', attribute || ' ' || text)
        when 'german' then to_tsvector('german', attribute || ' ' || text)
        when 'hungarian' then to_tsvector('hungarian', attribute || ' ' || text)
        when 'italian' then to_tsvector('italian', attribute || ' ' || text)
        when 'norwegian' then to_tsvector('norwegian', attribute || ' ' || text)
        when 'portuguese' then to_tsvector('portuguese', attribute || ' ' || text)
        when 'romanian' then to_tsvector('romanian', attribute || ' ' || text)
        when 'russian' then to_tsvector('russian', attribute || ' ' || text)
        when 'spanish' then to_tsvector('spanish', attribute || ' ' || text)
        when 'swedish' then to_tsvector('swedish', attribute || ' ' || text)
        when 'turkish' then to_tsvector('turkish', attribute || ' ' || text)
        else ''::tsvector
      end
    || array_to_tsvector(array[':' || user_name])
  ) stored,
  constraint facts_validity check (valid_until is null or valid_until >= valid_from),
  constraint facts_end_complete check ((valid_until is null) = (ended_because is null)),
  constraint facts_origin_complete check (
    source = 'extracted' and trust = 'agent' and campaign_id is not null and session_id is not null
    or source <> 'extracted' and trust = 'operator' and session_id is null and task_id is null and turn is null)
);
comment on table dalsegno.facts is 'Statements about users, current and past.';
comment on column dalsegno.facts.id is 'The id, version 7.';
comment on column dalsegno.facts.campaign_id is 'Where it was said; of a stated one NULL.';
comment on column dalsegno.facts.session_id is 'The session in which it was said. It may be gone.';
comment on column dalsegno.facts.task_id is 'The task with whose words it was said.';
comment on column dalsegno.facts.replaced_by is 'The fact that ended it.';
comment on column dalsegno.facts.recorded_at is 'When the row was written.';
comment on column dalsegno.facts.valid_from is 'When it was said.';
comment on column dalsegno.facts.valid_until is 'When it was contradicted or taken back.';
comment on column dalsegno.facts.expires_at is 'From then on it is not valid any more, even if no statement contradicts it.';
comment on column dalsegno.facts.turn is 'The turn of that session.';
comment on column dalsegno.facts.user_name is 'The user that it is about.';
comment on column dalsegno.facts.source is
  'extracted: by a model from a request; stated: by a person; edited: by a person, in place of another.';
comment on column dalsegno.facts.trust is 'operator: a person vouches for it; agent: a model has read it.';
comment on column dalsegno.facts.author is 'The agent in whose session it was said, or a person as in the audit log.';
comment on column dalsegno.facts.ended_because is
  'contradicted: by a newer one; edited, revoked: by a person. NULL: it is valid, unless it has expired.';
comment on column dalsegno.facts.language is 'The text search configuration that stems were made with; simple: none.';
comment on column dalsegno.facts.attribute is 'The property of the user that it is about. One fact of it is valid at a time.';
comment on column dalsegno.facts.attribute_key is
  'The attribute without case, repeated blanks and what does not change what a word says.';
comment on column dalsegno.facts.text is 'The statement, in a sentence.';
comment on column dalsegno.facts.text_key is 'The text in the same way: two of one attribute with the same key say the same.';
comment on column dalsegno.facts.search is 'Words, stems and the user; see above.';

create unique index facts_one_of_attribute on dalsegno.facts (user_name, attribute_key) where valid_until is null;
create index facts_by_attribute on dalsegno.facts (user_name, attribute_key, valid_from);
create index facts_by_text on dalsegno.facts (user_name, text_key);
create index facts_by_user on dalsegno.facts (user_name, id);
create index facts_by_campaign on dalsegno.facts (campaign_id) where campaign_id is not null;
create index facts_ended on dalsegno.facts ((least(valid_until, expires_at))) where valid_until is not null or expires_at is not null;
create index facts_search on dalsegno.facts using gin (search) with (fastupdate = off);

create table dalsegno.fact_showings (
  session_id uuid not null,
  fact_id uuid not null constraint fact_showings_fact references dalsegno.facts (id) on delete cascade,
  campaign_id uuid not null,
  shown_at timestamptz not null,
  constraint fact_showings_pkey primary key (session_id, fact_id)
);
comment on table dalsegno.fact_showings is 'Facts that a session was shown: repeating them in an answer is no news.';
comment on column dalsegno.fact_showings.session_id is 'The session. It may be gone.';
comment on column dalsegno.fact_showings.fact_id is 'The fact.';
comment on column dalsegno.fact_showings.campaign_id is 'The campaign of the session.';
comment on column dalsegno.fact_showings.shown_at is 'When it was shown last, to a day.';

create index fact_showings_by_fact on dalsegno.fact_showings (fact_id);
create index fact_showings_by_campaign on dalsegno.fact_showings (campaign_id);
create index fact_showings_by_time on dalsegno.fact_showings (shown_at);

create table dalsegno.fact_extractions (
  session_id uuid not null,
  to_seq bigint not null,
  from_seq bigint not null,
  campaign_id uuid not null,
  ended_at timestamptz not null,
  n_requests integer not null,
  n_found integer not null,
  n_new integer not null,
  outcome text not null constraint fact_extractions_outcome_known check (outcome in ('done', 'refused')),
  agent text not null,
  reason text,
  constraint fact_extractions_pkey primary key (session_id, to_seq),
  constraint fact_extractions_forward check (from_seq < to_seq),
  constraint fact_extractions_counts check (least(n_requests, n_found, n_new) >= 0),
  constraint fact_extractions_reason_complete check ((outcome = 'refused') = (reason is not null))
);
comment on table dalsegno.fact_extractions is 'Stretches of transcripts that were read for facts: none that is done is read again.';
comment on column dalsegno.fact_extractions.session_id is 'The session. It may be gone.';
comment on column dalsegno.fact_extractions.to_seq is 'The last place of the stretch.';
comment on column dalsegno.fact_extractions.from_seq is 'The place before its first.';
comment on column dalsegno.fact_extractions.campaign_id is 'Its campaign.';
comment on column dalsegno.fact_extractions.ended_at is 'When it was read.';
comment on column dalsegno.fact_extractions.n_requests is 'Number of requests of people in that part.';
comment on column dalsegno.fact_extractions.n_found is 'Facts that the answer had.';
comment on column dalsegno.fact_extractions.n_new is 'Number of new ones among those found.';
comment on column dalsegno.fact_extractions.outcome is
  'done; refused: no answer was one, the next reading of the session begins at the same place.';
comment on column dalsegno.fact_extractions.agent is 'The agent of the session.';
comment on column dalsegno.fact_extractions.reason is 'Why it was refused.';

create index fact_extractions_by_campaign on dalsegno.fact_extractions (campaign_id, ended_at);
create index fact_extractions_by_time on dalsegno.fact_extractions (ended_at);

----------------------------------------------------------------------------------------- embeddings
create table dalsegno.fact_embeddings (
  fact_id uuid not null constraint fact_embeddings_fact references dalsegno.facts (id) on delete cascade,
  made_at timestamptz not null,
  model text not null,
  vector real[] not null,
  constraint fact_embeddings_pkey primary key (fact_id) include (model)
);
comment on table dalsegno.fact_embeddings is 'Vectors of facts, if embeddings are on.';
comment on column dalsegno.fact_embeddings.fact_id is 'The fact. What it says never changes.';
comment on column dalsegno.fact_embeddings.made_at is 'When it was made.';
comment on column dalsegno.fact_embeddings.model is 'The model that made it.';
comment on column dalsegno.fact_embeddings.vector is 'The vector. Empty: the model refuses this text, and is not asked again.';

-- In the row as far as a page has room: a search reads very many of them.
alter table dalsegno.fact_embeddings alter column vector set storage main;
