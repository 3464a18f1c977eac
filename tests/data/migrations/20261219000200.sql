update dalsegno.sessions set forked_from_session = gen_random_uuid(), forked_at_turn = 1 where id = (select max(id::text)::uuid from dalsegno.sessions);
update dalsegno.turns set board_cursor = 0;
