insert into dalsegno.session_summaries
       (campaign_id, session_id, expired_at, stored_at, last_seq, board_cursor, context_tokens, turn_count, interrupted, agent, instance, rung, model, summary)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000d1', now(), now(), 12, 3, 900, 6, false, 'copywriter', 'main',
        'first', 'sim-1', 'The harbour was built in 1817.');
insert into dalsegno.session_summaries
       (campaign_id, session_id, expired_at, stored_at, last_seq, board_cursor, context_tokens, turn_count, interrupted, agent, instance, excerpts)
values ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-0000000000d2', now(), now(), 2, 0, 40, 1, true, 'reviewer', 'main',
        '[{"seq": 1, "role": "user", "by": null, "text": "Look at it."}]');
