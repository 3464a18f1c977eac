-- Compactions keep what people wrote, beside the summary.
alter table dalsegno.compactions add column prompts jsonb;
comment on column dalsegno.compactions.prompts is
  'What people wrote, word for word: prompts, sentences of others, and how many are in the archive alone. Stands in front of the summary. NULL: made before this was kept.';

create or replace view dalsegno.session_histories as
  select s.id, s.external_session_id, s.agent_type, s.campaign_id, s.model,
         coalesce((
           select jsonb_agg(jsonb_build_object('role', 'user', 'content', p.text) order by p.seq)
             from jsonb_to_recordset((c.prompts -> 'sentences') || (c.prompts -> 'kept')) as p (seq bigint, text text)), '[]')
         || case when c.summary is null then '[]'
              else jsonb_build_array(jsonb_build_object('role', 'system', 'content', c.summary)) end
         || coalesce((
              select jsonb_agg(
                       jsonb_build_object('role', case m.role when 'notice' then 'system' else m.role end, 'content', m.text)
                       || case when m.tool_calls is null then '{}' else jsonb_build_object('tool_calls', m.tool_calls) end
                       || case when m.tool_call_id is null then '{}'
                               else jsonb_build_object('tool_call_id', m.tool_call_id, 'tool_name', m.tool_name) end
                       order by m.seq)
                from dalsegno.messages as m
               where m.session_id = s.id and m.seq > coalesce(c.to_seq, 0)), '[]') as message_history,
         s.token_count, s.expires_at, s.created_at,
         s.instance, s.provider, s.state, s.generation
    from dalsegno.sessions as s
    left join dalsegno.compactions as c on c.session_id = s.id and c.generation = s.generation;
comment on view dalsegno.session_histories is
  'Sessions with their history as one JSON array, for other systems: what people wrote in older turns, the summary of those as a system message, then what was said since.';
