insert into dalsegno.facts
       (id, recorded_at, valid_from, user_name, source, trust, author, attribute, attribute_key, text, text_key)
values ('00000000-0000-7000-8000-0000000000c3', now(), now(), 'ann@example.org', 'stated', 'operator', 'cli:ann@host', 'City', 'city',
        'Porto.', 'porto'),
       ('00000000-0000-7000-8000-0000000000c4', now(), now(), 'ann@example.org', 'stated', 'operator', 'cli:ann@host', 'Birthplace',
        'birthplace', 'Porto.', 'porto');
