insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
select '00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'Part two.'
  from dalsegno.enqueue('run_turn', queue => 'turns');
