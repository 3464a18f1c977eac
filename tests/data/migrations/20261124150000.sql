update dalsegno.tasks set node = 'draft' where id = '00000000-0000-7000-8000-000000000003';
insert into dalsegno.session_nodes (session_id, campaign_id, task_id, entered_at, left_at, first_seq, last_seq, ordinal, agent, instance, node) values
  ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', now(), now(), 1, 1, 1,
   'copywriter', 'main', 'brief'),
  ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000003', now(), null, 2, null, 2,
   'copywriter', 'main', 'draft');
update dalsegno.compactions set node = 'brief', flow = '{}' where generation = 1;
