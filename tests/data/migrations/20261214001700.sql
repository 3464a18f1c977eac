insert into dalsegno.flows (id, campaign_id, created_at, template, inputs)
values ('00000000-0000-7000-8000-000000000201', '00000000-0000-7000-8000-000000000001', '2026-11-24', 'series', '{"topic": "Harbour"}');
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, flow_id, step, step_place)
select '00000000-0000-7000-8000-000000000202', '00000000-0000-7000-8000-000000000001', job_id, 'planner', 'Plan.',
       '00000000-0000-7000-8000-000000000201', 'plan', 0
  from dalsegno.enqueue('run_turn', queue => 'turns', lane => 'a-flow');
