insert into dalsegno.campaign_users (campaign_id, since, user_name)
values ('00000000-0000-7000-8000-000000000001', now(), 'ann@example.org');
insert into dalsegno.facts
       (id, campaign_id, session_id, task_id, recorded_at, valid_from, valid_until, turn, user_name, source, trust, author, ended_because,
        attribute, attribute_key, text, text_key, replaced_by)
values ('00000000-0000-7000-8000-0000000000c1', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000020',
        '00000000-0000-7000-8000-000000000010', now(), now(), now(), 1, 'ann@example.org', 'extracted', 'agent', 'planner', 'edited',
        'Diet', 'diet', 'Eats no meat.', 'eats no meat', '00000000-0000-7000-8000-0000000000c2');
insert into dalsegno.facts
       (id, recorded_at, valid_from, user_name, source, trust, author, attribute, attribute_key, text, text_key)
values ('00000000-0000-7000-8000-0000000000c2', now(), now(), 'ann@example.org', 'edited', 'operator', 'cli:ann@host', 'Diet', 'diet',
        'Eats fish.', 'eats fish'),
       ('00000000-0000-7000-8000-0000000000c3', now(), now(), 'ann@example.org', 'stated', 'operator', 'cli:ann@host', 'City', 'city',
        'Porto.', 'porto'),
       ('00000000-0000-7000-8000-0000000000c4', now(), now(), 'ann@example.org', 'stated', 'operator', 'cli:ann@host', 'Birthplace',
        'birthplace', 'Porto.', 'porto');
insert into dalsegno.fact_showings (session_id, fact_id, campaign_id, shown_at)
values ('00000000-0000-7000-8000-000000000020', '00000000-0000-7000-8000-0000000000c2', '00000000-0000-7000-8000-000000000001', now());
insert into dalsegno.fact_extractions
       (session_id, to_seq, from_seq, campaign_id, ended_at, n_requests, n_found, n_new, outcome, agent)
values ('00000000-0000-7000-8000-000000000020', 4, 0, '00000000-0000-7000-8000-000000000001', now(), 1, 1, 1, 'done', 'planner');
insert into dalsegno.fact_embeddings (fact_id, made_at, model, vector)
values ('00000000-0000-7000-8000-0000000000c2', now(), 'all-minilm', '{0.5, 0.5}');
