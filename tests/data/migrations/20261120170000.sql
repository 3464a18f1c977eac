update dalsegno.sessions
   set external_session_id = '00000000-0000-4000-8000-000000000004', head = '00000000-0000-4000-8000-000000000005', head_seq = 2,
       head_generation = 1, meter = '{}', login = 'main'
 where id = '00000000-0000-7000-8000-000000000002';
insert into dalsegno.transcript_files (session_id, n_bytes, name, sha256)
values ('00000000-0000-7000-8000-000000000002', 3, 'a.jsonl', decode(repeat('04', 32), 'hex'));
insert into dalsegno.transcript_chunks (session_id, from_byte, name, bytes)
values ('00000000-0000-7000-8000-000000000002', 0, 'a.jsonl', '{}');
insert into dalsegno.resting_logins (provider, login, until, why) values ('claude', 'main', '2026-11-21', 'its limit is used up');
