-- Removal from append-only tables through functions of their owner. The role of a service needs no right to delete from these tables,
-- or to change them: docs/UPGRADING.md has the grants. The functions check what the database can know of a removal, so that a call
-- cannot empty a table. Nothing removes from the ledger (usage), and lines of the audit log go when they are old enough.
--
-- Age limits apply to roles that are not the owner, and use the clock of the database. Only roles with a grant may call these
-- functions.

create function dalsegno.check_erasure_is_asked(of_campaign uuid) returns void language plpgsql stable as $body$
begin
  if not exists (select from dalsegno.erasures as e where e.campaign_id = of_campaign) then
    raise exception using errcode = 'DS405', message = format('campaign %s was not asked to be erased', of_campaign),
      hint = '`dalsegno campaign erase` asks for it.';
  end if;
end
$body$;
comment on function dalsegno.check_erasure_is_asked(uuid) is 'Raises DS405 unless the erasure of the campaign was asked for.';

create function dalsegno.check_campaign_is_erased(of_campaign uuid) returns void language plpgsql stable as $body$
begin
  perform dalsegno.check_erasure_is_asked(of_campaign);
  if not dalsegno.has_owner_rights()
     and not exists (select from dalsegno.erasures as e
                      where e.campaign_id = of_campaign and (e.contents is not null or e.ended_at is not null)) then
    raise exception using errcode = 'DS405', message = format('what there is in campaign %s was not measured yet', of_campaign),
      hint = 'Call dalsegno.measure_erasure first.';
  end if;
end
$body$;
comment on function dalsegno.check_campaign_is_erased(uuid) is
  'Raises DS405 unless the erasure of the campaign was asked for and, for a role that is not the owner, what there is was measured, or the erasure '
  'has ended before there was measure_erasure.';

------------------------------------------------------------------------------------------- receipts
create function dalsegno.measure_erasure(of_campaign uuid) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
begin
  perform dalsegno.check_erasure_is_asked(of_campaign);
  if not dalsegno.has_owner_rights()
     and (exists (select from dalsegno.tasks as t where t.campaign_id = of_campaign and t.ended_at is null)
          or exists (select from dalsegno.sessions as s where s.campaign_id = of_campaign and s.running_turn is not null)) then
    raise exception using errcode = 'DS405', message = format('tasks of campaign %s have not ended', of_campaign),
      hint = 'Cancel them, and wait for those that run.';
  end if;
  update dalsegno.erasures as e set contents = dalsegno.contents_of_campaign(of_campaign)
   where e.campaign_id = of_campaign and e.contents is null and e.ended_at is null;
end
$body$;
comment on function dalsegno.measure_erasure(uuid) is
  'Writes down what there is in a campaign before an erasure removes it. Once: a later call changes nothing.';

create function dalsegno.left_of_campaign(of_campaign uuid) returns text[] language sql stable as $body$
  select array(
    select l.kind from (values
      ('sessions', exists (select from dalsegno.sessions as s where s.campaign_id = of_campaign)),
      ('posts', exists (select from dalsegno.posts as p where p.campaign_id = of_campaign)),
      ('feed', exists (select from dalsegno.feed as f where f.campaign_id = of_campaign)),
      ('tasks', exists (select from dalsegno.tasks as t
                         where t.campaign_id = of_campaign
                           and (t.prompt <> '(erased)' or t.result <> '(erased)' or t.error <> '(erased)' or t.cancelled_because is not null))),
      ('blackboard_changes', exists (select from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign)),
      ('memory_items', exists (select from dalsegno.memory_items as i where i.campaign_id = of_campaign)),
      ('memory_versions', exists (select from dalsegno.memory_versions as v where v.campaign_id = of_campaign)),
      ('facts', exists (select from dalsegno.facts as f where f.campaign_id = of_campaign))
    ) as l (kind, is_left) where l.is_left)
$body$;
comment on function dalsegno.left_of_campaign(uuid) is
  'Kinds of rows that an erasure has still to remove, or to empty. Messages and summaries are those of sessions. The words of the campaign itself go last.';

create function dalsegno.end_erasure(of_campaign uuid, at timestamptz, covers bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_variable
declare
  kinds text[] := dalsegno.left_of_campaign(of_campaign);
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  if exists (select from dalsegno.campaigns as c
              where c.id = of_campaign and (c.name <> '(erased)' or c.brief <> '' or c.client_context is not null)) then
    kinds := kinds || 'campaign'::text;
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
comment on function dalsegno.end_erasure(uuid, timestamptz, bigint) is
  'Writes down that an erasure has ended, where nothing is left of the campaign; else raises DS405 and names it. For a role that is not the owner, the '
  'moment is at most a minute from the time of the database.';

---------------------------------------------------------------------------------------- transcripts
create function dalsegno.remove_transcripts(of_sessions uuid[], out n_messages bigint, out n_bytes bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  used_id uuid;
begin
  if not dalsegno.has_owner_rights() then
    select s.id into used_id from dalsegno.sessions as s
     where s.id = any(of_sessions)
       and (s.running_turn is not null
            or (s.closed_at is null and s.expires_at > now() + interval '1 minute'
                and not exists (select from dalsegno.erasures as e
                                 where e.campaign_id = s.campaign_id and (e.contents is not null or e.ended_at is not null))))
     limit 1;
    if found then
      raise exception using errcode = 'DS405', message = format('session %s is in use', used_id),
        hint = 'Messages of closed and expired sessions can be removed, and of erased ones that were measured.';
    end if;
  end if;
  perform set_config('dalsegno.erasing', 'on', true);
  delete from dalsegno.manifests where session_id = any(of_sessions);
  with gone as (
    delete from dalsegno.messages where session_id = any(of_sessions)
    returning octet_length(text) + coalesce(octet_length(tool_calls::text), 0) as bytes)
  select count(*), coalesce(sum(bytes), 0)::bigint into n_messages, n_bytes from gone;
  perform set_config('dalsegno.erasing', 'off', true);
end
$body$;
comment on function dalsegno.remove_transcripts(uuid[]) is
  'Removes the messages and manifests of sessions in which no turn runs and that are closed, have expired, or belong to a campaign that '
  'is erased.';

--------------------------------------------------------------------------- posts, feed, blackboards
create function dalsegno.remove_posts(of_campaign uuid, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  with newest as (
    select seq, id, unnest(audience || sender || 'all'::text) as viewer from
      (select * from dalsegno.posts where campaign_id = of_campaign order by seq desc limit n) as p
  ), unseen as (
    delete from dalsegno.post_viewers as v using newest as n where v.campaign_id = of_campaign and v.viewer = n.viewer and v.seq = n.seq
  ), unkeyed as (
    delete from dalsegno.post_keys as k using newest as n where k.campaign_id = of_campaign and k.post_id = n.id
  ), gone as (
    delete from dalsegno.posts where campaign_id = of_campaign and seq in (select seq from newest) returning 1)
  select count(*) into n_removed from gone;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_posts(uuid, bigint) is
  'Removes the newest n posts of a campaign that is erased: newest first, because answers refer to older posts. Places are not given '
  'out again.';

create function dalsegno.remove_events(of_campaign uuid, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  delete from dalsegno.feed where id in (select id from dalsegno.feed where campaign_id = of_campaign order by id limit n);
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_events(uuid, bigint) is 'Removes the oldest n events of a campaign that is erased.';

create function dalsegno.remove_old_events(until timestamptz, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  if not dalsegno.has_owner_rights() then
    until := least(until, now() - interval '1 day');
  end if;
  perform set_config('dalsegno.erasing', 'on', true);
  with oldest as (select id, created_at from dalsegno.feed order by id limit n)
  delete from dalsegno.feed as f using oldest as o where f.id = o.id and o.created_at < until;
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_old_events(timestamptz, bigint) is
  'Removes those of the oldest n events that are older than a moment, which is at least a day ago.';

create function dalsegno.remove_blackboard_changes(of_campaign uuid, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  delete from dalsegno.blackboard_changes
   where campaign_id = of_campaign
     and version in (select version from dalsegno.blackboard_changes where campaign_id = of_campaign order by version limit n);
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_blackboard_changes(uuid, bigint) is
  'Removes the oldest n changes of the blackboard of a campaign that is erased.';

--------------------------------------------------------------------------------------------- memory
create function dalsegno.remove_memory(of_campaign uuid, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  with going as materialized (select id from dalsegno.memory_items where campaign_id = of_campaign limit n),
       versions as (delete from dalsegno.memory_versions where item_id in (select id from going))
  delete from dalsegno.memory_items where id in (select id from going);
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_memory(uuid, bigint) is
  'Removes n items of the memory of a campaign that is erased, with all their versions.';

create function dalsegno.remove_ended_memory(until timestamptz, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  if not dalsegno.has_owner_rights() then
    until := least(until, now() - interval '1 day');
  end if;
  perform set_config('dalsegno.erasing', 'on', true);
  with going as materialized (
         select id from dalsegno.memory_items
          where (revoked_at is not null or expires_at is not null) and least(revoked_at, expires_at) < until
          order by least(revoked_at, expires_at) limit n for update skip locked),
       versions as (delete from dalsegno.memory_versions where item_id in (select id from going))
  delete from dalsegno.memory_items where id in (select id from going);
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_ended_memory(timestamptz, bigint) is
  'Removes n items that were revoked or have expired before a moment, at least a day ago, with all their versions. Locked items are '
  'passed over.';

---------------------------------------------------------------------------------------------- audit
create function dalsegno.remove_old_audit(until timestamptz, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_removed bigint;
begin
  if not dalsegno.has_owner_rights() then
    until := least(until, now() - make_interval(days => (select i.audit_min_days from dalsegno.installation as i)));
  end if;
  perform set_config('dalsegno.erasing', 'on', true);
  delete from dalsegno.audit where id in (select id from dalsegno.audit where at < until order by at limit n);
  get diagnostics n_removed = row_count;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_removed;
end
$body$;
comment on function dalsegno.remove_old_audit(timestamptz, bigint) is
  'Removes n lines of the audit log from before a moment, at least installation.audit_min_days ago.';

create function dalsegno.erase_audit(of_campaign uuid, subjects text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  n_erased bigint;
begin
  perform dalsegno.check_erasure_is_asked(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  -- Each line is replaced by one of the same number: lines are never changed.
  with ids as materialized (
    select s::uuid as id from unnest(subjects) as s where s ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),
  numbers as materialized (select s::bigint as id from unnest(subjects) as s where s ~ '^[0-9]{1,18}$'),
  -- Sessions go after their lines.
  sessions as materialized (
    select s.id from dalsegno.sessions as s
     where s.campaign_id = of_campaign
       and s.id in (select id from ids union all
                    select substr(l, 9)::uuid from unnest(subjects) as l where l ~ '^compact/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
    union
    select s.session_id from dalsegno.erased_sessions as s join dalsegno.erasures as e on e.id = s.erasure_id
     where e.campaign_id = of_campaign and s.session_id in (select id from ids)),
  own as materialized (
    select k as kind, of_campaign::text as subject from unnest(array['campaign', 'agent', 'blackboard', 'group', 'memory']) as k
    union all select 'task', t.id::text from dalsegno.tasks as t join ids on ids.id = t.id where t.campaign_id = of_campaign
    union all select 'session', s.id::text from sessions as s
    union all select 'lane', 'compact/' || s.id from sessions as s
    union all select 'lane', l from unnest(subjects) as l where starts_with(l, of_campaign || '/')
    union all select 'flow', f.id::text from dalsegno.flows as f join ids on ids.id = f.id where f.campaign_id = of_campaign
    union all select 'fact', f.id::text from dalsegno.facts as f join ids on ids.id = f.id where f.campaign_id = of_campaign
    union all select 'bulk_action', b.id::text from dalsegno.bulk_actions as b join ids on ids.id = b.id
               where b.filter ->> 'campaign_id' = of_campaign::text
    -- Jobs go after their lines, too. Those of tasks are known to the task when they are gone.
    union all select 'job', n.id::text from numbers as n
               where exists (select from dalsegno.tasks as t where t.job_id = n.id and t.campaign_id = of_campaign)
                  or exists (select from dalsegno.tasks as t where t.first_job_id = n.id and t.campaign_id = of_campaign)
                  or dalsegno.is_job_about(n.id, 'campaign_id', of_campaign::text)),
  gone as (
    delete from dalsegno.audit as a
     where a.subject = any(subjects) and a.data <> '{}'
       and ((a.subject_kind, a.subject) in (select o.kind, o.subject from own as o)
            or a.subject_kind = 'schedule'
               -- A name can be that of one schedule after another: the newest line up to this one that names a campaign tells which.
               and of_campaign::text = coalesce(
                 a.data ->> 'campaign_id',
                 (select p.data ->> 'campaign_id' from dalsegno.audit as p
                   where p.subject_kind = 'schedule' and p.subject = a.subject and p.id < a.id and p.data ? 'campaign_id'
                   order by p.id desc limit 1),
                 (select s.payload ->> 'campaign_id' from dalsegno.schedules as s where s.name = a.subject and s.created_at <= a.at)))
    returning a.*),
  kept as (
    insert into dalsegno.audit (id, at, actor_id, actor_kind, actor, action, subject_kind, subject, peer)
    overriding system value
    select id, at, actor_id, actor_kind, actor, action, subject_kind, subject, peer from gone returning 1)
  select count(*) into n_erased from kept;
  perform set_config('dalsegno.erasing', 'off', true);
  return n_erased;
end
$body$;
comment on function dalsegno.erase_audit(uuid, text[]) is
  'Empties the data of lines of the audit log about what belongs to a campaign that is erased. The lines stay: who, what and when. '
  'A line is left alone if its subject belongs to another campaign, or to none that the database knows of.';

create function dalsegno.erase_audit_of_tools(of_campaign uuid, after bigint, n bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  last_id bigint;
begin
  perform dalsegno.check_campaign_is_erased(of_campaign);
  perform set_config('dalsegno.erasing', 'on', true);
  with looked as materialized (select id from dalsegno.audit where id > after order by id limit n),
       gone as (delete from dalsegno.audit as a using looked
                 where a.id = looked.id and a.subject_kind = 'tool' and a.data ->> 'campaign_id' = of_campaign::text returning a.*),
       kept as (insert into dalsegno.audit (id, at, actor_id, actor_kind, actor, action, subject_kind, subject, peer)
                overriding system value
                select id, at, actor_id, actor_kind, actor, action, subject_kind, subject, peer from gone)
  select max(id) into last_id from looked;
  perform set_config('dalsegno.erasing', 'off', true);
  return last_id;
end
$body$;
comment on function dalsegno.erase_audit_of_tools(uuid, bigint, bigint) is
  'Empties the data of lines about calls of tools in a campaign that is erased, among the n lines behind a number. Gives the last of '
  'these; NULL at the end.';

--------------------------------------------------------------------------------------------- grants
revoke execute on function dalsegno.remove_transcripts(uuid[]) from public;
revoke execute on function dalsegno.remove_posts(uuid, bigint) from public;
revoke execute on function dalsegno.remove_events(uuid, bigint) from public;
revoke execute on function dalsegno.remove_old_events(timestamptz, bigint) from public;
revoke execute on function dalsegno.remove_blackboard_changes(uuid, bigint) from public;
revoke execute on function dalsegno.remove_memory(uuid, bigint) from public;
revoke execute on function dalsegno.remove_ended_memory(timestamptz, bigint) from public;
revoke execute on function dalsegno.remove_old_audit(timestamptz, bigint) from public;
revoke execute on function dalsegno.erase_audit(uuid, text[]) from public;
revoke execute on function dalsegno.erase_audit_of_tools(uuid, bigint, bigint) from public;
revoke execute on function dalsegno.measure_erasure(uuid) from public;
revoke execute on function dalsegno.end_erasure(uuid, timestamptz, bigint) from public;
