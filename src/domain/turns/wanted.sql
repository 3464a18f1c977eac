-- What a turn has to know before it begins: its task, the campaign, and whether that has a limit and a board. Of the blackboard, what
-- only some agents are shown; of the edicts, the first ones that have room together, and of the others the names.
-- $1 bigint job · $2 text[] those agents · $3 timestamptz now · $4 integer the room in bytes
select t.id, t.campaign_id, t.agent, t.instance, t.session_mode as "session_mode: Mode", t.state as "state: TaskState", t.prompt, t.result,
       t.error, t.budget_micros, t.budget_tokens, t.spent_micros, t.spent_tokens, t.job_id, t.session_id, t.turn, t.created_at,
       t.started_at, t.ended_at, t.traceparent, t.node, t.post_id,
       c.name, c.status as "status: Status", c.brief, c.client_context, c.created_at as campaign_created_at, c.closed_at,
       exists (select from dalsegno.task_dependencies as d where d.task_id = t.id) as "has_waited!",
       b.limit_micros as "limit_micros?", b.limit_tokens as "limit_tokens?",
       coalesce(p.last_seq, 0) as "last_post!",
       t.stop_asked_at is not null as "is_asked_to_stop!",
       exists (select from dalsegno.agent_pauses as p
                where p.agent = t.agent and (p.campaign_id = t.campaign_id or p.campaign_id is null) and p.resumed_at is null)
         as "is_paused!",
       (select json_agg(json_build_object('id', e.id, 'name', e.name, 'body', case when e.so_far <= $4::integer then e.body end)
                        order by e.created_at, e.id)
          from (select m.id, m.name, m.body, m.created_at, sum(octet_length(m.body)) over (order by m.created_at, m.id) as so_far
                  from dalsegno.memory_items as m
                 where m.campaign_id = t.campaign_id and m.kind = 'edict' and m.revoked_at is null
                   and (m.expires_at is null or m.expires_at > $3)) as e) as edicts,
       w.version as "blackboard_version?", w.document as "blackboard?"
  from dalsegno.tasks as t
  join dalsegno.campaigns as c on c.id = t.campaign_id
  left join dalsegno.campaign_budgets as b on b.campaign_id = t.campaign_id
  left join dalsegno.boards as p on p.campaign_id = t.campaign_id
  left join dalsegno.blackboards as w on w.campaign_id = t.campaign_id and t.agent = any($2::text[])
 where t.job_id = $1
