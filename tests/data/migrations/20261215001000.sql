insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at, subject, output)
values ('ci', 'create_campaign', 'spring', sha256('{"name":"Spring"}'), now(), '00000000-0000-7000-8000-000000000001',
        '{"id": "00000000-0000-7000-8000-000000000001", "name": "Spring"}');
