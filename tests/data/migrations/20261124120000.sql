select dalsegno.add_post('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000a1', now(), 'operator', 'operator',
                         array['copywriter'], 'Mind the tides.');
select dalsegno.add_post('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000a2', now(), 'agent', 'copywriter',
                         array['all'], 'They are minded.', '00000000-0000-7000-8000-0000000000a1',
                         '00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000002', 1);
update dalsegno.tasks set post_id = '00000000-0000-7000-8000-0000000000a1' where id = '00000000-0000-7000-8000-000000000003';
insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest, posts)
values ('00000000-0000-7000-8000-000000000002', 3, gen_random_uuid(), now(), 9000, 1, 'notice', '[]', decode(repeat('04', 32), 'hex'), '{1,2}');
