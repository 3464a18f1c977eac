-- Appends messages ($5) to a session ($1) in a turn ($2), from a place ($3) on, at a moment ($4). An existing prompt is skipped.
insert into dalsegno.messages
       (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
select $1, $3 + m.place, $2, $4, m.id, m.role, m.text, m.weight, m.digest, m.partial, m.tool_calls, m.tool_call_id, m.tool_name
  from jsonb_to_recordset($5) as m (
         place bigint, id uuid, role text, text text, weight bigint, digest bytea, partial boolean, tool_calls jsonb, tool_call_id text,
         tool_name text)
    on conflict (session_id, id) where role = 'user' do nothing
