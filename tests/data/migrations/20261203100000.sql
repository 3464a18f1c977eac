update dalsegno.sessions set rejected_turns = '{2}' where id = '00000000-0000-7000-8000-000000000002';
