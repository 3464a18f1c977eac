-- Stores new tasks ($3) of a campaign ($1) at a moment ($2).
insert into dalsegno.tasks
       (id, campaign_id, job_id, created_at, budget_micros, budget_tokens, session_mode, agent, instance, prompt, added_by, parent_id,
        continues_id, flow_id, step, step_place, traceparent, result_schema, step_fields, priority, run_at,
        within_secs)
select t.id, $1, t.job_id, $2, t.budget_micros, t.budget_tokens, t.session_mode, t.agent, t.instance, t.prompt, t.added_by, t.parent_id,
       t.continues_id, t.flow_id, t.step, t.step_place, t.traceparent, t.result_schema, t.step_fields, t.priority, t.run_at,
       t.within_secs
  from jsonb_to_recordset($3) as t (
         id uuid, job_id bigint, budget_micros bigint, budget_tokens bigint, session_mode text, agent text, instance text, prompt text,
         added_by text, parent_id uuid, continues_id uuid, flow_id uuid, step text, step_place integer, traceparent text,
         result_schema jsonb, step_fields jsonb, priority integer, run_at timestamptz, within_secs integer)
