-- Appends events ($2) at a moment ($1), in order.
insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, data)
select $1, e.campaign_id, e.task_id, e.session_id, e.kind, e.data
  from jsonb_to_recordset($2) as e (place integer, campaign_id uuid, task_id uuid, session_id uuid, kind text, data jsonb)
 order by e.place
