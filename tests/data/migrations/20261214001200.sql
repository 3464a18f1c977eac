insert into dalsegno.sessions (id, campaign_id, agent_type, provider, model, prompt_hash, fence_seed, expires_at, last_seq, turn_count,
                               generation, last_generation, external_session_id, head, head_seq, head_generation, meter, login, rejected_turns)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'copywriter', 'sim', 'sim', repeat('a', 64),
        decode(repeat('00', 32), 'hex'), '2026-12-01', 2, 1, 1, 1, '00000000-0000-4000-8000-000000000004',
        '00000000-0000-4000-8000-000000000005', 2, 1, '{}', 'main', '{2}');
insert into dalsegno.session_nodes (session_id, campaign_id, task_id, entered_at, left_at, first_seq, last_seq, ordinal, agent, instance, node) values
  ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', now(), now(), 1, 1, 1,
   'copywriter', 'main', 'brief'),
  ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', now(), null, 2, null, 2,
   'copywriter', 'main', 'draft');
insert into dalsegno.transcript_files (session_id, n_bytes, name, sha256)
values ('00000000-0000-7000-8000-000000000002', 3, 'a.jsonl', decode(repeat('04', 32), 'hex'));
insert into dalsegno.transcript_chunks (session_id, from_byte, name, bytes)
values ('00000000-0000-7000-8000-000000000002', 0, 'a.jsonl', '{}');
