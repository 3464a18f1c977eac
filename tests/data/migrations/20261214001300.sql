insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000003', 1, 1, 1, 1, now(), now(), 'done');
insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000003', 2, 1, 1, 7, now());
insert into dalsegno.turn_tokens (session_id, turn, minted_at, sha256)
values ('00000000-0000-7000-8000-000000000002', 2, now(), decode(repeat('0b', 32), 'hex'));
insert into dalsegno.partial_outputs (session_id, written_at, weight, turn, digest, text)
values ('00000000-0000-7000-8000-000000000002', now(), 4000, 2, decode(repeat('0c', 32), 'hex'), 'Once upon');
insert into dalsegno.tool_calls (task_id, session_id, lease, called_at, turn, occurrence, digest, tool, answer)
values ('00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 7, now(), 2, 0, decode(repeat('0a', 32), 'hex'),
        'board_post', '{"seq":1}');
select count(*) from dalsegno.session_states;
