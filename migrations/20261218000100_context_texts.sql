-- Texts of contexts that no other row holds: system prompts, skills, briefs, schemas of tools, notices, statuses, envelopes of requests.
-- With them and the rows of a session, a manifest yields the call again, byte for byte.

create table dalsegno.context_texts (
  created_at timestamptz not null default now(),
  kind text not null constraint context_texts_kind_not_empty check (kind <> ''),
  sha256 bytea not null constraint context_texts_sha256_length check (octet_length(sha256) = 32),
  content text not null,
  constraint context_texts_pkey primary key (sha256)
);
comment on table dalsegno.context_texts is 'Texts of contexts, each stored once. Removed with its last use.';
comment on column dalsegno.context_texts.content is
  'As it was sent, except that U+0001 stands for the fence of its elements, which is another one in each session.';

create table dalsegno.context_text_uses (
  session_id uuid not null constraint context_text_uses_session references dalsegno.sessions (id) on delete cascade,
  source_id uuid,
  sha256 bytea not null constraint context_text_uses_text references dalsegno.context_texts (sha256),
  constraint context_text_uses_pkey primary key (session_id, sha256)
);
comment on table dalsegno.context_text_uses is 'The sessions whose manifests refer to a text.';
comment on column dalsegno.context_text_uses.source_id is 'The fact that the text is about: the text is removed with it.';

create index context_text_uses_by_text on dalsegno.context_text_uses (sha256);
create index context_text_uses_by_source on dalsegno.context_text_uses (source_id) where source_id is not null;

-- Locked first, and looked at again: a session that begins to use a text meanwhile is seen, or finds the row gone and stores the text again.
-- Texts whose lock another transaction holds are skipped; the nightly cleanup and the end of an erasure remove what was left.
create function dalsegno.remove_unused_context_texts(candidates bytea[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  unused bytea[];
  n_removed bigint;
begin
  select array_agg(t.sha256) into unused from (
    select t.sha256 from dalsegno.context_texts as t
     where t.sha256 = any(candidates)
       and not exists (select from dalsegno.context_text_uses as u where u.sha256 = t.sha256)
       for update skip locked) as t;
  delete from dalsegno.context_texts as t
   where t.sha256 = any(unused) and not exists (select from dalsegno.context_text_uses as u where u.sha256 = t.sha256);
  get diagnostics n_removed = row_count;
  return n_removed;
end
$body$;
comment on function dalsegno.remove_unused_context_texts(bytea[]) is 'Removes those of the texts that no session uses.';
revoke execute on function dalsegno.remove_unused_context_texts(bytea[]) from public;

-- Older versions remove sessions and facts, too, so the database removes the texts.
create function dalsegno.follow_context_text_uses() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  candidates bytea[];
begin
  select array_agg(distinct sha256) into candidates from gone;
  if candidates is not null then
    perform dalsegno.remove_unused_context_texts(candidates);
  end if;
  return null;
end
$body$;
comment on function dalsegno.follow_context_text_uses() is 'Removes the texts of contexts with their last use.';

create trigger context_text_uses_removed after delete on dalsegno.context_text_uses
  referencing old table as gone for each statement execute function dalsegno.follow_context_text_uses();

create function dalsegno.remove_contexts_of_facts() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  ids uuid[];
begin
  select array_agg(id) into ids from gone;
  if ids is not null then
    delete from dalsegno.context_text_uses where source_id = any(ids);
  end if;
  return null;
end
$body$;
comment on function dalsegno.remove_contexts_of_facts() is 'Removes the texts of facts from the stored contexts, with the facts.';

create trigger facts_removed after delete on dalsegno.facts
  referencing old table as gone for each statement execute function dalsegno.remove_contexts_of_facts();
