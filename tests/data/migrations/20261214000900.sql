insert into dalsegno.audit (at, actor_id, actor_kind, actor, action, subject_kind, subject, peer, data)
values ('2026-11-22 10:00+00', null, 'cli', 'ann@host', 'key.create', 'key', '00000000-0000-7000-8000-0000000000a2', null, '{"name": "ci"}'),
       ('2026-11-22 11:00+00', '00000000-0000-7000-8000-0000000000a2', 'key', 'ci', 'task.cancel', 'task',
        '00000000-0000-7000-8000-000000000004', '10.1.2.3', '{"reason": "by a request"}');
insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject, data)
values (now(), 'agent', 'copywriter', 'tool.call', 'tool', 'board_post', '{"changed": {"seq": 1}}');
