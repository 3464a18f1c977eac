insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000003', 2, 1, 1, 7, now());
insert into dalsegno.tool_calls (task_id, session_id, lease, called_at, turn, occurrence, digest, tool, answer)
values ('00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 7, now(), 2, 0, decode(repeat('0a', 32), 'hex'),
        'board_post', '{"seq":1}');
insert into dalsegno.turn_tokens (session_id, turn, minted_at, sha256)
values ('00000000-0000-7000-8000-000000000002', 2, now(), decode(repeat('0b', 32), 'hex'));
insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
values (now(), 'agent', 'copywriter', 'tool.call', 'tool', 'board_post', '{"changed": {"seq": 1}}');
