insert into dalsegno.webhooks (id, created_at, url, kinds)
values ('00000000-0000-7000-8000-00000000000a', '2026-11-23', 'https://example.com/hook', '{task.done,task.failed,task.cancelled}');
insert into dalsegno.webhooks (id, campaign_id, created_at, failing_since, disabled_at, disabled_because, url, kinds)
values ('00000000-0000-7000-8000-00000000000b', '00000000-0000-7000-8000-000000000001', '2026-11-23', '2026-11-23', '2026-11-24',
        'it answered 410 Gone', 'https://example.com/gone', '{task.done}');
insert into dalsegno.webhook_secrets (webhook_id, valid_until, secret) values
  ('00000000-0000-7000-8000-00000000000a', '2026-11-24', 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'),
  ('00000000-0000-7000-8000-00000000000a', null, 'whsec_BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA');
update dalsegno.tasks set state = 'done', result = 'Once ...', ended_at = '2026-11-23 12:00+00'
 where id = '00000000-0000-7000-8000-000000000004';
update dalsegno.webhook_deliveries set state = 'delivered', attempts = 1, last_status = 204, ended_at = '2026-11-23 12:00:01+00'
 where state = 'waiting';
