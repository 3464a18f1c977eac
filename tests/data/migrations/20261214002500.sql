insert into dalsegno.blackboards (campaign_id, version, changed_at, document)
values ('00000000-0000-7000-8000-000000000001', 2, now(), '{"plan": {"parts": 10}}');
insert into dalsegno.blackboard_changes (campaign_id, version, changed_at, bytes, kind, actor, paths, document)
values ('00000000-0000-7000-8000-000000000001', 1, now(), 20, 'set', 'cli:ann@host', '{/plan/parts}', '{"plan": {"parts": 9}}');
insert into dalsegno.blackboard_changes (campaign_id, version, changed_at, task_id, turn, bytes, kind, actor, agent, paths, patch)
values ('00000000-0000-7000-8000-000000000001', 2, now(), '00000000-0000-7000-8000-000000000010', 1, 20, 'patch', 'planner', 'planner',
        '{/plan/parts}', '{"plan": {"parts": 10}}');
