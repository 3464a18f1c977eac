insert into dalsegno.campaigns (id, name, brief) values ('00000000-0000-7000-8000-000000000001', 'Harbour', 'Ten parts.');
insert into dalsegno.campaign_budgets (campaign_id, limit_micros) values ('00000000-0000-7000-8000-000000000001', 5000000);
insert into dalsegno.sessions (id, campaign_id, agent_type, provider, model, prompt_hash, fence_seed, expires_at, last_seq, turn_count,
                               generation, last_generation)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'copywriter', 'sim', 'sim', repeat('a', 64),
        decode(repeat('00', 32), 'hex'), '2026-12-01', 2, 1, 1, 1);
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, result, started_at, ended_at)
select '00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'Part one.', 'done', 'Once ...',
       now(), now()
  from dalsegno.enqueue('run_turn', queue => 'turns');
insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, state)
values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000003', 1, 1, 1, 1, now(), now(), 'done');
insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest) values
  ('00000000-0000-7000-8000-000000000002', 1, '00000000-0000-7000-8000-000000000003', now(), 9000, 1, 'user', 'Part one.', decode(repeat('01', 32), 'hex')),
  ('00000000-0000-7000-8000-000000000002', 2, gen_random_uuid(), now(), 8000, 1, 'assistant', 'Once ...', decode(repeat('02', 32), 'hex'));
insert into dalsegno.compactions (session_id, from_seq, to_seq, tokens_before, tokens_after, created_at, applied_at, generation, parent, turn, cause,
                                  outcome, rung, summary)
values ('00000000-0000-7000-8000-000000000002', 1, 1, 100, 20, now(), now(), 1, 0, 1, 'manual', 'applied', 'first', 'A part was asked for.');
insert into dalsegno.usage (called_at, campaign_id, cost_micros, purpose, outcome, agent, provider, model, provider_message_id)
values (now(), '00000000-0000-7000-8000-000000000001', 12, 'turn', 'done', 'copywriter', 'sim', 'sim', 'msg-1');
insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, sha256, manifest)
values ('00000000-0000-7000-8000-000000000002', 1, 0, now(), 100, decode(repeat('03', 32), 'hex'), '{}');
insert into dalsegno.feed (created_at, campaign_id, kind) values (now(), '00000000-0000-7000-8000-000000000001', 'turn.done');
