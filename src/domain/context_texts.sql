-- Stores texts that no row has, and that a session uses them.
-- $1 session · $2 turn and $3 its lease, or NULL for a call beside turns · lists of the same length: $4 digests · $5 kinds · $6 texts · $7 the facts that they are about, or NULL
with alone as materialized (
    select set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '500ms', true)
), session as materialized (
    select s.id from alone, dalsegno.sessions as s where s.id = $1 and ($2::integer is null or s.running_turn = $2 and s.lease = $3)
), fact as materialized (
    -- Locked in the order in which sessions are shown facts.
    select f.id from dalsegno.facts as f where f.id = any($7::uuid[]) order by f.id for key share
), given as (
    select t.* from session, unnest($4::bytea[], $5::text[], $6::text[], $7::uuid[]) as t (sha256, kind, content, source_id)
     where t.source_id is null or t.source_id in (select id from fact)
), new as (
    insert into dalsegno.context_texts (sha256, kind, content)
    select sha256, kind, content from given order by sha256 on conflict do nothing
)
insert into dalsegno.context_text_uses (session_id, sha256, source_id)
select session.id, given.sha256, given.source_id from session, given order by given.sha256 on conflict do nothing
