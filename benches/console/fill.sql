-- Fills a new database as after a month of work: campaigns, conversations, their tasks, turns and calls, and one long conversation.
--
-- :tasks tasks, a tenth of them in the first campaign. :conversations conversations in each of :campaigns campaigns. The first
-- conversation is the longest: it has a tenth of the first campaign's tasks, divided by :conversations. Times are relative to now().
-- Statements end with a semicolon at the end of a line. The names begin with `fill_` and are temporary.

create temporary table fill_campaigns as
select c, ('01900000-0000-7000-8000-' || lpad(to_hex(c), 12, '0'))::uuid as id from generate_series(0, :campaigns - 1) as c;

insert into dalsegno.campaigns (id, created_at, name, brief)
select id, now() - interval '40 days' + c * interval '1 hour', 'Harbour series ' || c, 'A series about the harbour and its lighthouse, in parts of 800 words.'
  from fill_campaigns;

update dalsegno.campaign_budgets set limit_micros = 5000000000;

-- The conversations: `s` counts them from 0, those of the first campaign first.
create temporary table fill_sessions as
select s, f.id as campaign_id, ('01910000-0000-7000-8000-' || lpad(to_hex(s), 12, '0'))::uuid as id,
       (array['copywriter', 'planner', 'reviewer'])[1 + s % 3] as agent, 'copy_' || s / 3 as instance
  from generate_series(0, :campaigns * :conversations - 1) as s join fill_campaigns as f on f.c = s / :conversations;

-- The tasks: `i` counts them from 1, the oldest first. A fiftieth waits; the newest before those run.
create temporary table fill_tasks as
select i, s, turn, created_at, started_at, ended_at, state,
       (lpad(to_hex((extract(epoch from created_at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i & 4095), 3, '0') || '8'
         || substr(md5(i::text), 1, 15))::uuid as id
  from (select i, s, turn, created_at,
               case when state <> 'queued' then created_at + interval '2 s' end as started_at,
               case when state not in ('queued', 'running') then created_at + interval '20 s' end as ended_at, state
          from (select i, now() - (:tasks - i) * (interval '30 days' / :tasks) as created_at,
                       case when i > :tasks - :tasks / 50 then 'queued' when i > :tasks - :tasks / 50 - :tasks / 50000 - 1 then 'running'
                            when i % 97 = 0 then 'failed' when i % 211 = 0 then 'cancelled' else 'done' end as state,
                       case when i % 10 = 0 then i / 10 % :conversations
                            else :conversations + (i - i / 10 - 1) % ((:campaigns - 1) * :conversations) end as s,
                       case when i % 10 = 0 then i / 10 / :conversations + 1
                            else (i - i / 10 - 1) / ((:campaigns - 1) * :conversations) + 1 end as turn
                  from generate_series(1, :tasks) as i) as counted) as timed;

create index on fill_tasks (s, turn);

analyze fill_tasks;

insert into dalsegno.sessions (id, campaign_id, created_at, used_at, expires_at, token_count, context_tokens, last_seq, turn_count, running_turn,
                               lease, generation, last_generation, state, agent_type, instance, provider, model, prompt_hash, fence_seed)
select s.id, s.campaign_id, now() - interval '30 days', t.used_at, now() + interval '30 days', 1200 * t.turns, 9000, 2 * t.turns, t.turns,
       t.running, case when t.running is not null then t.running_i end, case when s.s = 0 then 5 else 0 end, case when s.s = 0 then 5 else 0 end,
       case when t.running is not null then 'running' else 'idle' end, s.agent, s.instance, 'sim', 'sim-1', repeat('0', 64),
       sha256(s.id::text::bytea)
  from fill_sessions as s
 cross join lateral (select coalesce(max(t.turn) filter (where t.started_at is not null), 0) as turns,
                            max(t.turn) filter (where t.state = 'running') as running, max(t.i) filter (where t.state = 'running') as running_i,
                            coalesce(max(t.ended_at), now() - interval '30 days') as used_at
                       from fill_tasks as t where t.s = s.s) as t;

insert into dalsegno.flows (id, campaign_id, created_at, template)
select ('01920000-0000-7000-8000-' || lpad(to_hex(f), 12, '0'))::uuid, c.id, now() - interval '30 days' + f * interval '1 minute', 'series'
  from generate_series(0, :tasks / 1000 - 1) as f, fill_campaigns as c where c.c = 0;

insert into dalsegno.tasks (id, campaign_id, job_id, first_job_id, created_at, started_at, ended_at, session_id, turn, spent_micros, spent_tokens,
                            state, agent, instance, prompt, result, error, flow_id, step, step_place)
select t.id, s.campaign_id, t.i, t.i, t.created_at, t.started_at, t.ended_at, case when t.started_at is not null then s.id end,
       case when t.started_at is not null then t.turn end, case when t.ended_at is not null then 1500 else 0 end,
       case when t.ended_at is not null then 1200 else 0 end, t.state, s.agent, s.instance,
       'Part ' || t.i || ': ' || repeat('Write about the lamp, the keeper and the last letter from the rock. ', 4),
       case when t.state = 'done' then repeat('The lamp of the harbour was lit at six. ', 12) end,
       case when t.state = 'failed' then 'the provider refused the request: 400' end,
       f.id, case when f.id is not null then 'step_' || t.i / 100 % 10 end, case when f.id is not null then t.i / 100 % 10 end
  from fill_tasks as t join fill_sessions as s using (s)
  left join dalsegno.flows as f on t.i % 100 = 0 and f.id = ('01920000-0000-7000-8000-' || lpad(to_hex(t.i / 1000), 12, '0'))::uuid
 order by t.i;

insert into dalsegno.turns (session_id, task_id, number, attempt, job_id, lease, started_at, ended_at, input_tokens, output_tokens, cost_micros,
                            calls, state, error)
select s.id, t.id, t.turn, 1, t.i, t.i, t.started_at, t.ended_at, case when t.ended_at is not null then 900 else 0 end,
       case when t.ended_at is not null then 300 else 0 end, case when t.ended_at is not null then 1500 else 0 end, 1,
       case t.state when 'failed' then 'failed' when 'cancelled' then 'interrupted' when 'running' then 'running' else 'done' end,
       case when t.state in ('failed', 'cancelled') then 'the turn ended early' end
  from fill_tasks as t join fill_sessions as s using (s) where t.started_at is not null order by t.i;

insert into dalsegno.usage (called_at, campaign_id, task_id, session_id, turn, cost_micros, input_tokens, output_tokens, cache_read_tokens,
                            cache_creation_tokens, first_byte_ms, total_ms, purpose, outcome, agent, provider, model)
select t.started_at, s.campaign_id, t.id, s.id, t.turn, 1500, 900, 300, 0, 0, 400, 17000, 'turn', 'done', s.agent, 'sim', 'sim-1'
  from fill_tasks as t join fill_sessions as s using (s) where t.ended_at is not null order by t.i;

insert into dalsegno.runs (job_id, lease, started_at, ended_at, attempt, outcome, queue, kind, group_key, error)
select t.i, t.i, t.started_at, t.ended_at, 1, case t.state when 'done' then 'done' when 'failed' then 'failed' else 'cancelled' end, 'turns',
       'run_turn', s.campaign_id::text, case when t.state = 'failed' then 'the provider refused the request: 400' end
  from fill_tasks as t join fill_sessions as s using (s) where t.ended_at is not null order by t.i;

insert into dalsegno.feed (created_at, campaign_id, task_id, session_id, kind, agent, instance, data)
select t.ended_at, s.campaign_id, t.id, s.id, 'task.' || t.state, s.agent, s.instance, jsonb_build_object('agent', s.agent, 'instance', s.instance)
  from fill_tasks as t join fill_sessions as s using (s) where t.ended_at is not null order by t.i;

-- The messages of the last ten turns of each conversation, and all of the first one.
insert into dalsegno.messages (session_id, seq, id, created_at, weight, turn, role, text, digest)
select session_id, seq, id, created_at, octet_length(text) / 4, turn, role, text, sha256(text::bytea)
  from (select s.id as session_id, 2 * t.turn - 1 as seq, t.id, t.started_at as created_at, t.turn, 'user' as role,
               'Part ' || t.i || ': ' || repeat('Write about the lamp, the keeper and the last letter from the rock. ', 4) as text
          from fill_sessions as s join dalsegno.sessions as c on c.id = s.id
          join fill_tasks as t on t.s = s.s and t.started_at is not null and (s.s = 0 or t.turn > c.turn_count - 10)
        union all
        select s.id, 2 * t.turn, gen_random_uuid(), t.ended_at, t.turn, 'assistant', '# Part ' || t.i || E'\n\n'
               || repeat('The lamp of the harbour was **lit** at six. ', 12)
          from fill_sessions as s join dalsegno.sessions as c on c.id = s.id
          join fill_tasks as t on t.s = s.s and t.state = 'done' and (s.s = 0 or t.turn > c.turn_count - 10)) as all_of
 order by session_id, seq;

insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, real_tokens, sha256, manifest)
select s.id, t.turn, 0, t.ended_at, 9000, 9100, sha256(t.id::text::bytea),
       jsonb_build_object('parts', jsonb_build_array(
         jsonb_build_object('kind', 'agent_prompt', 'id', s.agent, 'span', null, 'sha256', repeat('0', 64), 'tokens', 700, 'sent', true, 'why', 'every_call'),
         jsonb_build_object('kind', 'campaign_brief', 'id', null, 'span', null, 'sha256', repeat('1', 64), 'tokens', 300, 'sent', true, 'why', 'every_call'),
         jsonb_build_object('kind', 'transcript', 'id', null, 'span', jsonb_build_object('from_seq', 1, 'to_seq', 2 * t.turn - 2, 'count', 2 * t.turn - 2),
                            'sha256', repeat('2', 64), 'tokens', 7600, 'sent', true, 'why', 'recent_history'),
         jsonb_build_object('kind', 'posts', 'id', null, 'span', null, 'sha256', repeat('3', 64), 'tokens', 300, 'sent', true, 'why', 'since_cursor'),
         jsonb_build_object('kind', 'task', 'id', t.id, 'span', null, 'sha256', repeat('4', 64), 'tokens', 100, 'sent', true, 'why', 'this_turn')))
  from fill_sessions as s join dalsegno.sessions as c on c.id = s.id
  join fill_tasks as t on t.s = s.s and t.ended_at is not null and (s.s = 0 or t.turn > c.turn_count - 3);

insert into dalsegno.compactions (session_id, from_seq, to_seq, tokens_before, tokens_after, created_at, applied_at, generation, parent, turn, cause,
                                  outcome, summary)
select s.id, 1, g * c.last_seq / 10, 40000, 2000, now() - interval '20 days' + g * interval '1 day', now() - interval '20 days' + g * interval '1 day',
       g, g - 1, g * c.turn_count / 10 + 1, 'auto', 'applied', repeat('The keeper found a letter on the rock. ', 40)
  from fill_sessions as s join dalsegno.sessions as c on c.id = s.id, generate_series(1, 5) as g where s.s = 0;

-- The queue: of each conversation the first waiting task is ready, the others are behind it.
insert into dalsegno.lanes (key, next_seq)
select s.campaign_id || '/' || s.agent || '/' || s.instance, 1000000 from fill_sessions as s order by s.s;

insert into dalsegno.jobs (id, lane_id, lane_seq, run_at, enqueued_at, lease, claimed_at, worker_id, attempt, max_attempts, state, queue, kind, group_key)
select q.i, l.id, q.place, q.created_at, q.created_at, case when q.state = 'running' then q.i end,
       case when q.state = 'running' then q.started_at end, case when q.state = 'running' then '00000000-0000-0000-0000-000000000001'::uuid end,
       case when q.state = 'running' then 1 else 0 end, 5,
       case when q.state = 'running' then 'running' when q.place = 1 then 'ready' else 'blocked' end, 'turns', 'run_turn', s.campaign_id::text
  from (select t.*, row_number() over (partition by t.s order by t.i) as place from fill_tasks as t where t.ended_at is null) as q
  join fill_sessions as s using (s) join dalsegno.lanes as l on l.key = s.campaign_id || '/' || s.agent || '/' || s.instance
 order by q.i;

insert into dalsegno.job_payloads (job_id, payload) select id, '{"asked": ""}' from dalsegno.jobs;

insert into dalsegno.transition_totals (total, queue, kind, event, from_state, to_state)
select count(*), queue, kind, 'enqueue', '', state from dalsegno.jobs group by queue, kind, state;

insert into dalsegno.workers (id, lease_until, slots, host, queues, kinds)
select '00000000-0000-0000-0000-000000000001', now() + interval '1 day', 32, 'fill', '{turns}', '{run_turn}';

select setval('dalsegno.job_ids', :tasks + 1000), setval('dalsegno.leases', :tasks + 1000);

-- What belongs to the first campaign.
insert into dalsegno.boards (campaign_id, last_seq) select id, :tasks / 200 from fill_campaigns where c = 0;

insert into dalsegno.posts (campaign_id, seq, id, posted_at, origin, sender, audience, text)
select c.id, n, gen_random_uuid(), now() - interval '30 days' + n * interval '1 minute', 'agent', 'planner', '{copywriter}',
       repeat('The quay is open again, and the **lamp** is lit. ', 5)
  from fill_campaigns as c, generate_series(1, :tasks / 200) as n where c.c = 0;

insert into dalsegno.memory_items (id, campaign_id, created_at, written_at, version, kind, name, origin, author, trust, title, body)
select ('01930000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, c.id, now(), now(), 1, 'record', 'record-' || n, 'operator', 'operator',
       'operator', 'Record ' || n, 'The lamp burns oil.'
  from fill_campaigns as c, generate_series(1, :tasks / 2000) as n where c.c = 0;

insert into dalsegno.blackboards (campaign_id, version, changed_at, document)
select id, 100, now(), '{"status": "draft", "parts": [1, 2, 3]}' from fill_campaigns where c = 0;

insert into dalsegno.blackboard_changes (campaign_id, version, changed_at, bytes, kind, actor, paths, document)
select c.id, v, now() - (100 - v) * interval '1 minute', 20, 'set', 'operator', '{/status}', '{"status": "draft"}'
  from fill_campaigns as c, generate_series(1, 100) as v where c.c = 0;

insert into dalsegno.api_keys (id, created_at, handle, name, created_by, scopes, sha256)
values ('01940000-0000-7000-8000-000000000000', now(), '000000000000', 'console', 'fill', '{admin}', sha256('fill'));

insert into dalsegno.sign_ins (id, created_at, expires_at, key_id, sha256, peer, browser)
select ('01950000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() - interval '1 day', now() + interval '1 day',
       '01940000-0000-7000-8000-000000000000', sha256(n::text::bytea), '192.0.2.7', 'Chromium'
  from generate_series(1, :tasks / 500) as n;

-- What belongs to the installation: users and facts, changes, a receiver, dead letters, runs of an eval.
insert into dalsegno.campaign_users (campaign_id, since, user_name) select id, now() - interval '40 days', 'user-' || c % 50 from fill_campaigns;

insert into dalsegno.facts (id, recorded_at, valid_from, user_name, source, trust, author, attribute, attribute_key, text, text_key)
select ('01960000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() - interval '20 days' + n * interval '1 second',
       now() - interval '20 days' + n * interval '1 second', 'user-' || n % 50, 'stated', 'operator', 'operator', 'Note ' || n, 'note ' || n,
       'Prefers part ' || n || ' of the series.', 'prefers part ' || n || ' of the series.'
  from generate_series(1, :tasks / 20) as n;

insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject)
select created_at, 'cli', case i % 3 when 0 then 'ann' else 'bob' end, case i % 4 when 0 then 'task.retry' else 'task.cancel' end, 'task', id::text
  from fill_tasks where i % 2 = 0 order by i;

-- It is disabled, so that tasks of the bench itself are not reported.
insert into dalsegno.webhooks (id, created_at, disabled_at, disabled_because, url, kinds)
values ('01970000-0000-7000-8000-000000000000', now() - interval '31 days', now(), 'operator', 'https://shop.example/hooks/dalsegno',
        '{task.done,task.failed,task.cancelled}');

insert into dalsegno.webhook_secrets (webhook_id, created_at, secret)
values ('01970000-0000-7000-8000-000000000000', now() - interval '31 days', 'fill');

insert into dalsegno.webhook_deliveries (id, webhook_id, task_id, created_at, ended_at, attempts, last_status, kind, state, last_error, body)
select id, '01970000-0000-7000-8000-000000000000', id, ended_at, ended_at + interval '1 s', case when i % 388 = 0 then 12 else 1 end,
       case when i % 388 = 0 then 503 else 200 end, 'task.' || state, case when i % 388 = 0 then 'failed' else 'delivered' end,
       case when i % 388 = 0 then 'the receiver answers 503' end, '{}'
  from fill_tasks where i % 4 = 0 and ended_at is not null order by i;

insert into dalsegno.dead_jobs (id, enqueued_at, died_at, lease, priority, attempt, max_attempts, crash_count, queue, kind, reason, error, payload)
select :tasks + i, created_at, ended_at, i, 100, 20, 20, 0, 'upkeep', 'send_webhook', 'exhausted', 'the receiver answers 503', '{}'
  from fill_tasks where i % 200 = 0 and ended_at is not null order by i;

insert into dalsegno.eval_runs (campaign_id, began_at, recorded_at, judge_micros, unfinished, eval, run, variants, answers)
select c.id, now() - interval '30 days' + n * interval '1 hour', now() - interval '30 days' + n * interval '1 hour', 0, 0, 'captions', 'run-' || n,
       jsonb_build_array(jsonb_build_object('variant', 'now', 'agent', 'copywriter', 'answers', 20, 'passed', n % 20, 'tokens', 9000, 'micros', 20000, 'median_ms', 4200)),
       (select jsonb_agg(jsonb_build_object('variant', 'now', 'case', 'case-' || a, 'repetition', 1, 'passed', a <= n % 20, 'failed_checks', 0, 'tokens', 450,
                                            'micros', 1000, 'took_ms', 4200, 'task_id', t.id))
          from generate_series(1, 20) as a join fill_tasks as t on t.i = a)
  from fill_campaigns as c, generate_series(1, greatest(:tasks / 2000, 2)) as n where c.c = 0;

-- Behind the ids of dead letters.
select setval('dalsegno.job_ids', 2 * :tasks + 1000);

drop table fill_tasks, fill_sessions, fill_campaigns;
