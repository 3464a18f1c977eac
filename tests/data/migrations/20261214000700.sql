insert into dalsegno.feed (created_at, campaign_id, kind) values (now(), '00000000-0000-7000-8000-000000000001', 'turn.done');
insert into dalsegno.feed (created_at, campaign_id, task_id, kind)
values (now(), '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000005', 'task.queued');
