-- Reads everything that a turn needs before it begins: the task, the campaign, its budget limit and board; the blackboard for agents
-- with a grant; the first edicts that fit, and the names of the others. An edict that alone is too long takes no space from the others.
-- For agents that are shown facts, also the newest facts about the user that fit.
-- $1 bigint job · $2 text[] agents that see the blackboard · $3 timestamptz now · $4 integer space for edicts in bytes
-- $5 text[] agents that are shown facts · $6 integer space for facts in bytes · $7 boolean are there rate limits
select t.id, t.campaign_id, t.agent, t.instance, t.session_mode as "session_mode: Mode", t.state as "state: TaskState", t.prompt, t.result,
       t.result_json, t.result_schema, t.result_fault, t.n_corrections, t.step_fields, t.flow_id,
       t.error, t.budget_micros, t.budget_tokens, t.spent_micros, t.spent_tokens, t.job_id, t.session_id, t.turn, t.created_at,
       t.started_at, t.ended_at, t.traceparent, t.node, t.post_id,
       (select q.sender from dalsegno.posts as q where q.campaign_id = t.campaign_id and q.id = t.post_id and q.origin = 'agent') as asked_by,
       c.name, c.status as "status: Status", c.version as campaign_version, c.parameters as "campaign_parameters: Json<Parameters>", c.brief, c.client_context, c.created_at as campaign_created_at, c.closed_at,
       (select p.parameters from dalsegno.task_parameters as p where p.task_id = t.id) as "task_parameters?: Json<Parameters>",
       exists (select from dalsegno.task_dependencies as d where d.task_id = t.id) as "has_waited!",
       exists (select from dalsegno.batches as m where m.task_id = t.id) as "has_batch!",
       case when t.within_secs is not null
            then greatest(t.created_at, t.run_at, (select w.over_at from dalsegno.task_waits as w where w.task_id = t.id))
                 + make_interval(secs => t.within_secs) end as "answer_by?",
       exists (select from dalsegno.task_attachments as a where a.task_id = t.id) as "has_attachments!",
       t.first_job_id is not null as "was_retried!",
       b.limit_micros as "limit_micros?", b.limit_tokens as "limit_tokens?",
       coalesce(b.soft_micros, b.soft_tokens) is not null as "has_soft_limit!",
       case when exists (select from dalsegno.budgets) then dalsegno.budgets_of(t.campaign_id, t.agent) else '{}' end as "budgets!",
       coalesce(p.last_seq, 0) as "last_post!",
       (select b.since from dalsegno.busy_tasks as b where b.task_id = t.id and b.until > $3::timestamptz - interval '1 hour')
         as "busy_since?",
       (select json_agg(b) from dalsegno.busy_models as b) as busy_models,
       case when $7::boolean then (select json_build_object('keys', l.keys, 'amounts', l.amounts)
                                     from dalsegno.rate_limit_waits as l where l.task_id = t.id and l.granted_at is not null)
         end as "limit_grant?",
       t.stop_asked_at is not null as "is_asked_to_stop!",
       exists (select from dalsegno.agent_pauses as p
                where p.agent = t.agent and (p.campaign_id = t.campaign_id or p.campaign_id is null) and p.resumed_at is null)
         as "is_paused!",
       (select f.id from dalsegno.flows as f where f.id = t.flow_id and f.paused_at is not null and t.started_at is null)
         as "paused_flow?",
       (select json_agg(json_build_object('id', e.id, 'name', e.name, 'author', e.author, 'trust', e.trust,
                                          'body', case when e.has_room and e.so_far <= $4::integer then e.body end)
                        order by e.created_at, e.id)
          from (select m.id, m.name, m.author, m.trust, m.body, m.created_at, l.has_room,
                       sum(l.bytes) filter (where l.has_room) over (order by m.created_at, m.id) as so_far
                  from dalsegno.memory_items as m,
                       lateral (select octet_length(m.body) as bytes, octet_length(m.body) <= $4::integer as has_room) as l
                 where m.campaign_id = t.campaign_id and m.kind = 'edict' and m.revoked_at is null
                   and (m.expires_at is null or m.expires_at > $3)) as e) as edicts,
       (select json_agg(json_build_object('id', f.id, 'attribute', f.attribute, 'text', f.text, 'source', f.source,
                                          'said', to_char(f.valid_from at time zone 'UTC', 'YYYY-MM-DD')) order by f.id)
          from (select n.*, sum(octet_length(n.attribute) + octet_length(n.text)) over (order by n.id desc) as so_far
                  from (select i.id, i.attribute, i.text, case when i.is_written then 'written' else i.source end as source, i.valid_from
                          from dalsegno.facts as i
                         where i.user_name = u.user_name and i.valid_until is null and (i.expires_at is null or i.expires_at > $3)
                         order by i.id desc limit 200) as n) as f
         where f.so_far <= $6::integer) as facts,
       u.user_name as "user_name?",
       w.version as "blackboard_version?", w.document as "blackboard?"
  from dalsegno.tasks as t
  join dalsegno.campaigns as c on c.id = t.campaign_id
  left join dalsegno.campaign_budgets as b on b.campaign_id = t.campaign_id
  left join dalsegno.boards as p on p.campaign_id = t.campaign_id
  left join dalsegno.blackboards as w on w.campaign_id = t.campaign_id and t.agent = any($2::text[])
  left join dalsegno.campaign_users as u on u.campaign_id = t.campaign_id and t.agent = any($5::text[])
 where t.job_id = $1
