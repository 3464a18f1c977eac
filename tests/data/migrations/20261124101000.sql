-- A child of a task that has ended, the continuation that waits for it, and one that waits for both.
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, parent_id)
select '00000000-0000-7000-8000-000000000101', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'Part two.',
       '00000000-0000-7000-8000-000000000003'
  from dalsegno.enqueue('run_turn', queue => 'turns');
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, continues_id)
select '00000000-0000-7000-8000-000000000102', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'All parts.',
       '00000000-0000-7000-8000-000000000003'
  from dalsegno.enqueue('run_joined_turn', queue => 'turns', run_at => dalsegno.never());
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt)
select '00000000-0000-7000-8000-000000000103', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'A review.'
  from dalsegno.enqueue('run_joined_turn', queue => 'turns', run_at => dalsegno.never());
select dalsegno.await_signal(array_agg(job_id)) from dalsegno.tasks
 where id in ('00000000-0000-7000-8000-000000000102', '00000000-0000-7000-8000-000000000103');
select dalsegno.wait_for_tasks('00000000-0000-7000-8000-000000000102', array['00000000-0000-7000-8000-000000000101'::uuid]);
select dalsegno.wait_for_tasks('00000000-0000-7000-8000-000000000103',
  array['00000000-0000-7000-8000-000000000101', '00000000-0000-7000-8000-000000000102']::uuid[], 'cancel');
