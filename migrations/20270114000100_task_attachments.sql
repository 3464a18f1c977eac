-- Attachments: files that a task is given with its prompt. Their contents are in file_contents, once, beside those of output files. A
-- content is removed with its last use of either kind.

create table dalsegno.task_attachments (
  attached_at timestamptz not null,
  position integer not null constraint task_attachments_position check (position > 0),
  task_id uuid not null constraint task_attachments_task references dalsegno.tasks (id) on delete cascade,
  sha256 bytea not null constraint task_attachments_content references dalsegno.file_contents (sha256),
  name text collate "C" not null constraint task_attachments_name_length check (char_length(name) between 1 and 255),
  constraint task_attachments_pkey primary key (task_id, position),
  constraint task_attachments_name_key unique (task_id, name)
);
comment on table dalsegno.task_attachments is 'Files that tasks are given with their prompts.';
comment on column dalsegno.task_attachments.position is 'The order in which a call has them, from 1.';

create index task_attachments_by_content on dalsegno.task_attachments (sha256);

-- As before, for both kinds of uses.
create or replace function dalsegno.remove_unused_file_contents(candidates bytea[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  unused bytea[];
  n_removed bigint;
begin
  select array_agg(c.sha256) into unused from (
    select c.sha256 from dalsegno.file_contents as c
     where c.sha256 = any(candidates)
       and not exists (select from dalsegno.task_files as f where f.sha256 = c.sha256)
       and not exists (select from dalsegno.task_attachments as a where a.sha256 = c.sha256)
       for update skip locked) as c;
  delete from dalsegno.file_contents as c
   where c.sha256 = any(unused)
     and not exists (select from dalsegno.task_files as f where f.sha256 = c.sha256)
     and not exists (select from dalsegno.task_attachments as a where a.sha256 = c.sha256);
  get diagnostics n_removed = row_count;
  return n_removed;
end
$body$;
comment on function dalsegno.remove_unused_file_contents(bytea[]) is 'Removes those of the contents that no file and no attachment has.';

create function dalsegno.remove_some_unused_file_contents(most bigint) returns bigint language sql volatile as $body$
  select dalsegno.remove_unused_file_contents(array(
    select c.sha256 from dalsegno.file_contents as c
     where not exists (select from dalsegno.task_files as f where f.sha256 = c.sha256)
       and not exists (select from dalsegno.task_attachments as a where a.sha256 = c.sha256) limit most))
$body$;
comment on function dalsegno.remove_some_unused_file_contents(bigint) is 'Removes some contents that no file and no attachment has. Returns their number.';

create trigger task_attachments_removed after delete on dalsegno.task_attachments
  referencing old table as gone for each statement execute function dalsegno.follow_task_files();

create function dalsegno.remove_task_attachments(of_campaign uuid, most bigint) returns bigint language sql volatile as $body$
  with removed as (
    delete from dalsegno.task_attachments
     where (task_id, position) in (select a.task_id, a.position
                                     from dalsegno.task_attachments as a join dalsegno.tasks as t on t.id = a.task_id
                                    where t.campaign_id = of_campaign limit most)
    returning 1)
  select count(*) from removed
$body$;
comment on function dalsegno.remove_task_attachments(uuid, bigint) is 'Removes some attachments of the tasks of a campaign. Returns their number.';

-- An erasure counts the attachments of tasks, and ends when there are none.

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
           || case when v.parameters = '{}' then '[]' else jsonb_build_array(v.parameters) end
      from dalsegno.campaign_versions as v join dalsegno.campaigns as c on c.id = v.campaign_id
     where v.campaign_id = of_campaign and c.version > 1
    union all
    select 'campaign_parameters', '', jsonb_build_array(c.parameters)
      from dalsegno.campaigns as c where c.id = of_campaign and c.parameters <> '{}'
    union all
    select 'task_parameters', p.task_id::text, jsonb_build_array(p.task_id, p.parameters)
      from dalsegno.task_parameters as p join dalsegno.tasks as t on t.id = p.task_id where t.campaign_id = of_campaign
    union all
    -- Only of tasks with a schema or a structured result: others have the digests that they had.
    select 'task_results', t.id::text, jsonb_build_array(t.id, t.result_schema, t.result_json, t.result_fault)
      from dalsegno.tasks as t
     where t.campaign_id = of_campaign and coalesce(t.result_schema::text, t.result_json::text, t.result_fault) is not null
    union all
    select 'task_files', f.task_id::text || f.name, jsonb_build_array(f.task_id, f.turn, f.name, encode(f.sha256, 'hex'), f.problem)
      from dalsegno.task_files as f join dalsegno.tasks as t on t.id = f.task_id where t.campaign_id = of_campaign
    union all
    -- Only where there are some: others have the digests that they had.
    select 'task_attachments', a.task_id::text || to_char(a.position, 'FM0000000000'),
           jsonb_build_array(a.task_id, a.position, a.name, encode(a.sha256, 'hex'))
      from dalsegno.task_attachments as a join dalsegno.tasks as t on t.id = a.task_id where t.campaign_id = of_campaign
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
    select 'reruns', r.session_id::text || to_char(r.turn, 'FM0000000000') || to_char(r.number, 'FM0000000000'),
           jsonb_build_array(r.session_id, r.turn, r.number, r.agent_file, r.answer, r.tool_calls, r.error)
      from dalsegno.reruns as r join dalsegno.sessions as s on s.id = r.session_id where s.campaign_id = of_campaign
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

create or replace function dalsegno.left_of_campaign(of_campaign uuid) returns text[] language sql stable as $body$
  select array(
    select l.kind from (values
      ('sessions', exists (select from dalsegno.sessions as s where s.campaign_id = of_campaign)),
      ('posts', exists (select from dalsegno.posts as p where p.campaign_id = of_campaign)),
      ('feed', exists (select from dalsegno.feed as f where f.campaign_id = of_campaign)),
      ('tasks', exists (select from dalsegno.tasks as t
                         where t.campaign_id = of_campaign
                           and (t.prompt <> '(erased)' or t.result <> '(erased)' or t.error <> '(erased)' or t.cancelled_because is not null))),
      ('task_results', exists (select from dalsegno.tasks as t
                                where t.campaign_id = of_campaign
                                  and coalesce(t.result_schema::text, t.result_json::text, t.result_fault, t.step_fields::text) is not null)),
      ('task_labels', exists (select from dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id
                               where t.campaign_id = of_campaign)),
      ('task_files', exists (select from dalsegno.task_files as f join dalsegno.tasks as t on t.id = f.task_id
                              where t.campaign_id = of_campaign)),
      ('task_attachments', exists (select from dalsegno.task_attachments as a join dalsegno.tasks as t on t.id = a.task_id
                                    where t.campaign_id = of_campaign)),
      ('task_parameters', exists (select from dalsegno.task_parameters as p join dalsegno.tasks as t on t.id = p.task_id
                                   where t.campaign_id = of_campaign)),
      ('blackboard_changes', exists (select from dalsegno.blackboard_changes as b where b.campaign_id = of_campaign)),
      ('memory_items', exists (select from dalsegno.memory_items as i where i.campaign_id = of_campaign)),
      ('memory_versions', exists (select from dalsegno.memory_versions as v where v.campaign_id = of_campaign)),
      ('facts', exists (select from dalsegno.facts as f where f.campaign_id = of_campaign))
    ) as l (kind, is_left) where l.is_left)
$body$;
