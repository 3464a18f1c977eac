select dalsegno.wait_for_tasks('00000000-0000-7000-8000-000000000102', array['00000000-0000-7000-8000-000000000101'::uuid]);
select dalsegno.wait_for_tasks('00000000-0000-7000-8000-000000000103',
  array['00000000-0000-7000-8000-000000000101', '00000000-0000-7000-8000-000000000102']::uuid[], 'cancel');
-- A step whose flow is paused when it could begin, and a task that was put on the queue again after a known failure.
select dalsegno.pause_flow('00000000-0000-7000-8000-000000000201', '2026-11-25');
select dalsegno.wait_aside('00000000-0000-7000-8000-000000000202');
select dalsegno.resume_flow('00000000-0000-7000-8000-000000000201');
update dalsegno.task_dependencies set forgiven_job = 1 where task_id = '00000000-0000-7000-8000-000000000103' and place = 1;
select dalsegno.look_at_task_wait('00000000-0000-7000-8000-000000000202');
