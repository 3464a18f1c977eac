insert into dalsegno.transition_deltas (n, queue, kind, event, from_state, to_state) values (1, 'turns', 'run_turn', 'delete', 'dead', 'deleted');
