insert into dalsegno.api_keys (id, created_at, handle, name, created_by, scopes, sha256, campaigns)
values ('019aa2f1-0000-7000-8000-0000000000b1', now(), '00000000b1b1', 'bound', 'cli:ann@host', '{campaign_read,campaign_enqueue}',
        sha256('bound'), array[gen_random_uuid()]);
