-- Counts the reruns of turns in the contents of an erased campaign. They are removed with their sessions.

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
