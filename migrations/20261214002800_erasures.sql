-- Erasures: deletion of everything said in a campaign, and its receipt. The cost stays, without content.
--
-- An erasure is complete when the worker that ended it knew all tables that may hold texts. While two versions run beside each
-- other, the older worker may take the job; it does not know tables that came later. So a worker stores the newest migration that
-- it knew (covers), and a worker that knows more repeats the erasure. The same happens after each upgrade: it costs a look at what is
-- left of a campaign, and no new table is forgotten.

create table dalsegno.erasures (
  id uuid not null constraint erasures_pkey primary key,
  campaign_id uuid not null
    constraint erasures_campaign references dalsegno.campaigns (id)
    constraint erasures_one_per_campaign unique,
  asked_at timestamptz not null,
  ended_at timestamptz,
  reason text not null constraint erasures_reason_length check (char_length(reason) between 1 and 500 and btrim(reason) <> ''),
  removed jsonb not null default '{}',
  covers bigint,
  looked_again_at timestamptz,
  step text,
  contents jsonb,
  vacuumed_at timestamptz,
  rewritten_at timestamptz,
  statement text,
  signature bytea,
  public_key bytea
);
comment on table dalsegno.erasures is
  'Receipts: a campaign whose texts are to be erased, or have been, with the counts. The only text in it is the reason of the request.';
comment on column dalsegno.erasures.ended_at is
  'When nothing was left in the database. Copies on the disks of hosts are in erasure_hosts. Written by end_erasure.';
comment on column dalsegno.erasures.removed is 'How much the worker has removed so far, by what it was. Its own counts: the receipt does not sign them.';
comment on column dalsegno.erasures.covers is 'The newest migration that the worker knew that has ended it. NULL: it has not ended.';
comment on column dalsegno.erasures.looked_again_at is 'When a worker that knows more tables has asked for it again.';
comment on column dalsegno.erasures.step is
  'The current step: cancel, then the kinds that are removed. NULL: it has not begun, or has ended.';
comment on column dalsegno.erasures.contents is
  'How many rows there were of each kind when the removal began, and the SHA-256 of their texts: see contents_of_campaign. Written by measure_erasure.';
comment on column dalsegno.erasures.vacuumed_at is
  'When all tables had been vacuumed after the removal. NULL: the role of the service may not, or it was never done.';
comment on column dalsegno.erasures.rewritten_at is 'When all tables had been rewritten after the removal (VACUUM FULL).';
comment on column dalsegno.erasures.statement is 'The text that is signed: JSON.';
comment on column dalsegno.erasures.signature is 'Ed25519, over the bytes of the statement in UTF-8.';
comment on column dalsegno.erasures.public_key is 'The public half of the key that signed; the private half is in no table.';

create table dalsegno.erased_sessions (
  erasure_id uuid not null constraint erased_sessions_erasure references dalsegno.erasures (id),
  session_id uuid not null,
  external_session_id text collate "C",
  constraint erased_sessions_pkey primary key (erasure_id, session_id)
);
comment on table dalsegno.erased_sessions is 'Names of sessions that are gone, so that each host finds the folders that it has of them.';
comment on column dalsegno.erased_sessions.external_session_id is
  'The name that the provider gave it, which is also the name of its folder.';

create table dalsegno.erasure_hosts (
  erasure_id uuid not null constraint erasure_hosts_erasure references dalsegno.erasures (id),
  host text not null,
  swept_at timestamptz not null,
  folders bigint not null,
  bytes bigint not null,
  constraint erasure_hosts_pkey primary key (erasure_id, host),
  constraint erasure_hosts_not_negative check (least(folders, bytes) >= 0)
);
comment on table dalsegno.erasure_hosts is 'Which hosts have looked through their folders after an erasure, and what they removed.';

------------------------------------------------------------------------------------------- receipts
-- Row by row: the SHA-256 of a JSON array of the row's texts; then the SHA-256 of these digests in the order of the rows' keys.
create function dalsegno.contents_of_campaign(of_campaign uuid) returns jsonb language sql stable as $body$
  with texts as (
    select 'campaign' as kind, '' as place, jsonb_build_array(c.name, c.brief, c.client_context) as row
      from dalsegno.campaigns as c where c.id = of_campaign
    union all
    select 'tasks', t.id::text, jsonb_build_array(t.id, t.agent, t.instance, t.prompt, t.result, t.error)
      from dalsegno.tasks as t where t.campaign_id = of_campaign
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
comment on function dalsegno.contents_of_campaign(uuid) is
  'The contents of a campaign by kind: the number of rows, and a SHA-256 over their texts. On a database that was restored from a '
  'backup it gives the values of the receipt of the erasure. Reads all of the campaign.';

-- The functions that remove look up whether the erasure was requested: the request does not change.
create function dalsegno.keep_what_was_asked() returns trigger language plpgsql as $body$
begin
  raise exception using errcode = 'DS405', message = format('erasure %s: what was asked, when and why stays', old.id),
    hint = 'Ask for the erasure of another campaign.';
end
$body$;
comment on function dalsegno.keep_what_was_asked() is 'Refuses changes of the campaign, the time and the reason of an erasure.';

create trigger erasures_keep_what_was_asked before update on dalsegno.erasures for each row
  when ((old.id, old.campaign_id, old.asked_at, old.reason) is distinct from (new.id, new.campaign_id, new.asked_at, new.reason))
  execute function dalsegno.keep_what_was_asked();

-- A worker signs these columns, so functions of the owner write them.
create function dalsegno.keep_what_was_removed() returns trigger language plpgsql as $body$
begin
  -- In a function of the owner (security definer), the current user is the owner.
  if not pg_has_role(current_user, (select c.relowner from pg_class as c where c.oid = tg_relid), 'member') then
    raise exception using errcode = 'DS405', message = format('erasure %s: the role %I cannot write what there was and when that ended', new.id, current_user),
      hint = 'dalsegno.measure_erasure and dalsegno.end_erasure write it.';
  end if;
  if tg_op = 'UPDATE' and (old.contents is not null and new.contents is distinct from old.contents
                           or old.ended_at is not null and new.ended_at is distinct from old.ended_at) then
    raise exception using errcode = 'DS405', message = format('erasure %s: what there was, and when the removal ended, stays', old.id),
      hint = 'Ask for the erasure of another campaign.';
  end if;
  return new;
end
$body$;
comment on function dalsegno.keep_what_was_removed() is
  'Refuses to write what there was and when the erasure ended to all but functions of the owner, and to change it once it is known.';

create trigger erasures_keep_what_was_removed before update on dalsegno.erasures for each row
  when ((old.contents, old.ended_at) is distinct from (new.contents, new.ended_at))
  execute function dalsegno.keep_what_was_removed();
create trigger erasures_begin_empty before insert on dalsegno.erasures for each row
  when (new.contents is not null or new.ended_at is not null)
  execute function dalsegno.keep_what_was_removed();

-- For tasks, which know nothing of erasures.
create function dalsegno.is_erased(campaign uuid) returns boolean
    language sql stable
    set search_path = ''
return exists (select from dalsegno.erasures as e where e.campaign_id = is_erased.campaign);

comment on function dalsegno.is_erased(uuid) is
    'An erasure of the campaign was requested: its texts are gone, or will be.';
