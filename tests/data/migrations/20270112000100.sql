-- A conversation whose first model rests, and the turn that another one was given to.
update dalsegno.failovers set entries = '[{"entry": "claude/claude-sonnet-5", "failures": 0, "until": "2026-11-21T00:15:00Z", "because": "overloaded"}]';
update dalsegno.turns
   set chain = '{"entry": "ollama/qwen3:8b", "skipped": [{"entry": "claude/claude-sonnet-5", "because": "overloaded", "usable_at": "2026-11-21T00:15:00Z"}]}'
 where (session_id, number) in (select session_id, number from dalsegno.turns order by session_id, number limit 1);
