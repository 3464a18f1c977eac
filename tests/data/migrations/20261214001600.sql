-- A task that is done, one that runs, and one that was retried.
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, result, started_at, ended_at, node)
select '00000000-0000-7000-8000-000000000003', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'Part one.', 'done', 'Once ...',
       now(), now(), 'draft'
  from dalsegno.enqueue('run_turn', queue => 'turns');
insert into dalsegno.tasks (id, campaign_id, job_id, agent, prompt, state, started_at, n_waits, added_by)
select '00000000-0000-7000-8000-000000000004', '00000000-0000-7000-8000-000000000001', job_id, 'copywriter', 'Part two.', 'running', now(), 1,
       'cli:ann@host'
  from dalsegno.enqueue('run_turn', queue => 'turns');
insert into dalsegno.tasks (id, campaign_id, job_id, first_job_id, agent, prompt, traceparent)
select '00000000-0000-7000-8000-000000000005', '00000000-0000-7000-8000-000000000001', job_id, job_id - 1, 'copywriter', 'Part three.',
       '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  from dalsegno.enqueue('run_turn', queue => 'turns');
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
