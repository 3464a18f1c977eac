-- The receipt of an erasure says what functions of the owner have found: what there was, and that nothing is left. The role of a service
-- calls them, and writes neither. The counts in `removed` are those of the worker, for people who look on, and are not signed.

comment on column dalsegno.erasures.contents is
  'How many rows there were of each kind when the removal began, and the SHA-256 of their texts: see contents_of_campaign. Written by measure_erasure.';
comment on column dalsegno.erasures.ended_at is
  'When nothing was left in the database. Copies on the disks of hosts are in erasure_hosts. Written by end_erasure.';
comment on column dalsegno.erasures.removed is 'How much the worker has removed so far, by what it was. Its own counts: the receipt does not sign them.';

create or replace function dalsegno.keep_what_was_removed() returns trigger language plpgsql as $body$
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
drop trigger erasures_keep_what_was_removed on dalsegno.erasures;
create trigger erasures_keep_what_was_removed before update on dalsegno.erasures for each row
  when ((old.contents, old.ended_at) is distinct from (new.contents, new.ended_at))
  execute function dalsegno.keep_what_was_removed();
create trigger erasures_begin_empty before insert on dalsegno.erasures for each row
  when (new.contents is not null or new.ended_at is not null)
  execute function dalsegno.keep_what_was_removed();

create function dalsegno.check_erasure_is_asked(of_campaign uuid) returns void language plpgsql stable as $body$
begin
  if not exists (select from dalsegno.erasures as e where e.campaign_id = of_campaign) then
    raise exception using errcode = 'DS405', message = format('campaign %s was not asked to be erased', of_campaign),
      hint = '`dalsegno campaign erase` asks for it.';
  end if;
end
$body$;
comment on function dalsegno.check_erasure_is_asked(uuid) is 'Raises DS405 unless the erasure of the campaign was asked for.';

create or replace function dalsegno.check_campaign_is_erased(of_campaign uuid) returns void language plpgsql stable as $body$
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

create or replace function dalsegno.remove_transcripts(of_sessions uuid[], out n_messages bigint, out n_bytes bigint)
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

------------------------------------------------------------------------------------------------ audit
create or replace function dalsegno.erase_audit(of_campaign uuid, subjects text[]) returns bigint
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
                  or exists (select from dalsegno.jobs as j join dalsegno.job_payloads as p on p.job_id = j.id
                              where j.id = n.id and of_campaign::text in (j.group_key, p.payload ->> 'campaign_id'))
                  or exists (select from dalsegno.dead_jobs as d
                              where d.id = n.id and of_campaign::text in (d.group_key, d.payload ->> 'campaign_id'))),
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

------------------------------------------------------------------------------------------------ rights
-- Those who may remove posts may end erasures: a service goes on with the grants that it has.
do $body$
declare
  new_function regprocedure;
  grantee text;
begin
  foreach new_function in array array['dalsegno.measure_erasure(uuid)', 'dalsegno.end_erasure(uuid, timestamptz, bigint)']::regprocedure[] loop
    execute format('revoke execute on function %s from public', new_function);
    for grantee in
      select distinct a.grantee::regrole::text from pg_proc as p, aclexplode(p.proacl) as a
       where p.oid = 'dalsegno.remove_posts(uuid, bigint)'::regprocedure and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
      execute format('grant execute on function %s to %s', new_function, grantee);
    end loop;
  end loop;
end
$body$;
