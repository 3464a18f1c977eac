insert into dalsegno.tasks (id, campaign_id, job_id, first_job_id, agent, prompt)
select '00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000001', job_id, job_id - 1, 'copywriter', 'Part three.'
  from dalsegno.enqueue('run_turn', queue => 'turns');
