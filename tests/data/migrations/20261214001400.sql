insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest, posts) values
  ('00000000-0000-7000-8000-000000000002', 1, '00000000-0000-7000-8000-000000000003', now(), 9000, 1, 'user', 'Part one.',
   decode(repeat('01', 32), 'hex'), null),
  ('00000000-0000-7000-8000-000000000002', 2, gen_random_uuid(), now(), 8000, 1, 'assistant', 'Once ...', decode(repeat('02', 32), 'hex'), null),
  ('00000000-0000-7000-8000-000000000002', 3, gen_random_uuid(), now(), 9000, 1, 'notice', '[]', decode(repeat('04', 32), 'hex'), '{1,2}');
insert into dalsegno.compactions (session_id, from_seq, to_seq, tokens_before, tokens_after, created_at, applied_at, generation, parent, turn, cause,
                                  outcome, rung, summary, node, flow, prompts)
values ('00000000-0000-7000-8000-000000000002', 1, 1, 100, 20, now(), now(), 1, 0, 1, 'manual', 'applied', 'first', 'A part was asked for.',
        'brief', '{}', '{
  "kept": [{"seq": 1, "text": "Write part one, in British spelling."}],
  "sentences": [{"seq": 0, "text": "No emojis, please.", "strength": "rule"}],
  "archived": 3}');
insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
values ('00000000-0000-7000-8000-000000000002', 1, 0, now(), 100, decode(repeat('03', 32), 'hex'), '{}');
insert into dalsegno.session_summaries
       (campaign_id, session_id, expired_at, stored_at, last_seq, board_cursor, context_tokens, turn_count, interrupted, agent, instance, rung, model, summary)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000d1', now(), now(), 12, 3, 900, 6, false, 'copywriter', 'main',
        'first', 'sim-1', 'The harbour was built in 1817.');
insert into dalsegno.session_summaries
       (campaign_id, session_id, expired_at, stored_at, last_seq, board_cursor, context_tokens, turn_count, interrupted, agent, instance, excerpts)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000d2', now(), now(), 2, 0, 40, 1, true, 'reviewer', 'main',
        '[{"seq": 1, "role": "user", "by": null, "text": "Look at it."}]');
