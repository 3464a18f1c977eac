insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at, subject, output)
values ('ci', 'reset_agents', 'spring', sha256('{}'), now(), '',
        '{"campaign_id": "00000000-0000-7000-8000-000000000001", "agent": null, "fresh": false, "session_ids": []}');
