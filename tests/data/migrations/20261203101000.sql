insert into dalsegno.partial_outputs (session_id, written_at, weight, turn, digest, text)
values ('00000000-0000-7000-8000-000000000002', now(), 4000, 2, decode(repeat('0c', 32), 'hex'), 'Once upon');
