-- Versions of campaigns: brief and client context can be edited, and each version is stored with its author and time.
--
-- An older version of the service creates campaigns without a first version, so the database adds it.

alter table dalsegno.campaigns
  add column version integer not null default 1 constraint campaigns_version_positive check (version > 0);
comment on column dalsegno.campaigns.version is 'Number of the current version of brief and client context, from 1.';

create table dalsegno.campaign_versions (
  campaign_id uuid not null constraint campaign_versions_campaign references dalsegno.campaigns (id),
  version integer not null constraint campaign_versions_version_positive check (version > 0),
  changed_at timestamptz not null,
  changed_by text,
  brief text not null,
  client_context text,
  constraint campaign_versions_pkey primary key (campaign_id, version)
);
comment on table dalsegno.campaign_versions is 'Every version of the brief and the client context of a campaign. Append-only.';
comment on column dalsegno.campaign_versions.changed_by is
  'The author, as the audit log names them. NULL: the first version of a campaign that was created in SQL or by an older version.';

-- Retention looks for the successors of old versions.
create index campaign_versions_by_change on dalsegno.campaign_versions (changed_at) where version > 1;

create trigger campaign_versions_append_only before update or delete or truncate on dalsegno.campaign_versions
  for each statement execute function dalsegno.refuse_change();

insert into dalsegno.campaign_versions (campaign_id, version, changed_at, brief, client_context)
select c.id, 1, c.created_at, c.brief, c.client_context from dalsegno.campaigns as c where not dalsegno.is_erased(c.id);

-- Deferred, so that a transaction that stores the first version with its author comes first.
create function dalsegno.add_first_version() returns trigger language plpgsql as $body$
begin
  insert into dalsegno.campaign_versions (campaign_id, version, changed_at, brief, client_context)
  values (new.id, 1, new.created_at, new.brief, new.client_context)
  on conflict on constraint campaign_versions_pkey do nothing;
  return null;
end
$body$;
comment on function dalsegno.add_first_version() is 'Stores the first version of a campaign, unless it is stored already.';

create constraint trigger campaigns_have_a_version after insert on dalsegno.campaigns
  deferrable initially deferred for each row execute function dalsegno.add_first_version();

--------------------------------------------------------------------------------------------- removal
create function dalsegno.remove_campaign_versions(of_campaign uuid) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  delete from dalsegno.campaign_versions where campaign_id = of_campaign;
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_campaign_versions(uuid) is 'Removes the versions of a campaign that is erased.';
revoke execute on function dalsegno.remove_campaign_versions(uuid) from public;

create function dalsegno.remove_old_campaign_versions(until timestamptz, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  if not dalsegno.has_owner_rights() then
    until := least(until, now() - interval '1 day');
  end if;
  perform set_config('dalsegno.erasing', 'on', true);
  with replaced as materialized (
    select v.campaign_id, v.version from dalsegno.campaign_versions as v
      join dalsegno.campaign_versions as next on next.campaign_id = v.campaign_id and next.version = v.version + 1
     where next.version > 1 and next.changed_at < until limit n)
  delete from dalsegno.campaign_versions as v using replaced as r where v.campaign_id = r.campaign_id and v.version = r.version;
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_old_campaign_versions(timestamptz, bigint) is
  'Removes n versions that were replaced before a moment, at least a day ago. The current version of a campaign stays.';
revoke execute on function dalsegno.remove_old_campaign_versions(timestamptz, bigint) from public;

create or replace function dalsegno.contents_of_campaign(of_campaign uuid) returns jsonb language sql stable as $body$
  with texts as (
    select 'campaign' as kind, '' as place, jsonb_build_array(c.name, c.brief, c.client_context) as row
      from dalsegno.campaigns as c where c.id = of_campaign
    union all
    select 'tasks', t.id::text, jsonb_build_array(t.id, t.agent, t.instance, t.prompt, t.result, t.error)
      from dalsegno.tasks as t where t.campaign_id = of_campaign
    union all
    -- Only where there are some: a campaign from before there were tags has the digests that it had.
    select 'campaign_labels', '', jsonb_build_array(c.tags, c.metadata)
      from dalsegno.campaigns as c where c.id = of_campaign and (c.tags <> '{}' or c.metadata <> '{}')
    union all
    -- Only of campaigns that were edited: one from before there were versions has the digests that it had.
    select 'campaign_versions', to_char(v.version, 'FM0000000000000000000'), jsonb_build_array(v.version, v.brief, v.client_context)
      from dalsegno.campaign_versions as v join dalsegno.campaigns as c on c.id = v.campaign_id
     where v.campaign_id = of_campaign and c.version > 1
    union all
    select 'task_labels', l.task_id::text, jsonb_build_array(l.task_id, l.tags, l.metadata)
      from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id where t.campaign_id = of_campaign
    union all
    select 'messages', m.session_id::text || to_char(m.seq, 'FM0000000000000000000'),
           jsonb_build_array(m.session_id, m.seq, m.turn, m.role, m.text, m.tool_call_id, m.tool_name, m.tool_calls)
      from dalsegno.messages as m join dalsegno.sessions as s on s.id = m.session_id where s.campaign_id = of_campaign
    union all
    select 'compactions', c.session_id::text || to_char(c.id, 'FM0000000000000000000'),
           jsonb_build_array(c.session_id, c.generation, c.summary, c.pins)
      from dalsegno.compactions as c join dalsegno.sessions as s on s.id = c.session_id where s.campaign_id = of_campaign
    union all
    select 'posts', to_char(p.seq, 'FM0000000000000000000'), jsonb_build_array(p.seq, p.id, p.sender, p.audience, p.text)
      from dalsegno.posts as p where p.campaign_id = of_campaign
    union all
    select 'feed', to_char(f.id, 'FM0000000000000000000'), jsonb_build_array(f.id, f.kind, f.data)
      from dalsegno.feed as f where f.campaign_id = of_campaign
    union all
    select 'blackboard_changes', to_char(b.version, 'FM0000000000000000000'), jsonb_build_array(b.version, b.actor, b.agent, b.patch, b.document)
      from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign
    union all
    select 'memory_items', i.id::text, jsonb_build_array(i.id, i.kind, i.owner, i.name, i.version, i.title, i.body)
      from dalsegno.memory_items as i where i.campaign_id = of_campaign
    union all
    select 'memory_versions', v.item_id::text || to_char(v.version, 'FM0000000000000000000'), jsonb_build_array(v.item_id, v.version, v.title, v.body)
      from dalsegno.memory_versions as v where v.campaign_id = of_campaign
    union all
    select 'facts', f.id::text, jsonb_build_array(f.id, f.user_name, f.attribute, f.text)
      from dalsegno.facts as f where f.campaign_id = of_campaign
  ), kinds as (
    select kind, count(*) as n,
           sha256(string_agg(sha256(convert_to(row::text, 'UTF8')), ''::bytea order by place collate "C")) as digest
      from texts group by kind
  )
  select coalesce(jsonb_object_agg(kind, jsonb_build_object('rows', n, 'sha256', encode(digest, 'hex'))), '{}') from kinds
$body$;

create or replace function dalsegno.end_erasure(of_campaign uuid, at timestamptz, covers bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_variable
declare
  kinds text[] := dalsegno.left_of_campaign(of_campaign);
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  if exists (select from dalsegno.campaigns as c
              where c.id = of_campaign and (c.name <> '(erased)' or c.brief <> '' or c.client_context is not null or c.tags <> '{}' or c.metadata <> '{}')) then
    kinds := kinds || 'campaign'::text;
  end if;
  if exists (select from dalsegno.campaign_versions as v where v.campaign_id = of_campaign) then
    kinds := kinds || 'campaign_versions'::text;
  end if;
  if kinds <> '{}' then
    raise exception using errcode = 'DS405', message = format('campaign %s is not erased yet: %s', of_campaign, array_to_string(kinds, ', ')),
      hint = 'The worker that erases it goes on.';
  end if;
  if not dalsegno.has_owner_rights() then
    at := greatest(least(at, now() + interval '1 minute'), now() - interval '1 minute');
  end if;
  update dalsegno.erasures as e set ended_at = coalesce(e.ended_at, at), covers = greatest(e.covers, end_erasure.covers), step = null
   where e.campaign_id = of_campaign;
end
$body$;
