insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at, subject, output)
values ('ci', 'put_campaign_user', 'spring', sha256('{}'), now(), '00000000-0000-7000-8000-000000000001',
        '{"user": "ann", "since": "2026-12-16T00:00:00Z"}');
