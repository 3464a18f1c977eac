insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, title, body)
values ('00000000-0000-7000-8000-0000000000b1', '00000000-0000-7000-8000-000000000001', now(), now(), 2, 'edict', 'tone', 'operator',
        'cli:ann@host', 'operator', 'The tone', 'Write short sentences.');
insert into dalsegno.memory_versions (item_id, campaign_id, written_at, version, origin, author, trust, title, body)
values ('00000000-0000-7000-8000-0000000000b1', '00000000-0000-7000-8000-000000000001', now(), 1, 'operator', 'cli:ann@host', 'operator',
        'The tone', 'Write.');
insert into dalsegno.memory_items
       (id, campaign_id, created_at, written_at, version, kind, owner, name, origin, author, trust, title, body, task_id, turn, revoked_at, revoked_by)
values ('00000000-0000-7000-8000-0000000000b2', '00000000-0000-7000-8000-000000000001', now(), now(), 1, 'journal', 'planner', 'first',
        'agent', 'planner', 'agent', 'A note', 'The tides matter.', '00000000-0000-7000-8000-000000000010', 1, now(), 'cli:ann@host');
insert into dalsegno.memory_embeddings (item_id, made_at, version, model, vector)
values ('00000000-0000-7000-8000-0000000000b1', now(), 2, 'all-minilm', '{0.5, 0.5}');
