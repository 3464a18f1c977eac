insert into dalsegno.api_keys (id, created_at, handle, name, created_by, scopes, sha256)
values ('00000000-0000-7000-8000-0000000000a2', '2026-11-22 10:00+00', '00000000aaa2', 'ci', 'cli:ann@host', '{read,enqueue}',
        decode(repeat('05', 32), 'hex'));
insert into dalsegno.api_keys
       (id, created_at, expires_at, last_used_at, replaced_by, handle, name, created_by, scopes, sha256)
values ('00000000-0000-7000-8000-0000000000a1', '2026-11-21 10:00+00', '2026-11-23 10:00+00', '2026-11-22 09:00+00',
        '00000000-0000-7000-8000-0000000000a2', '00000000aaa1', 'ci', 'cli:ann@host', '{read,enqueue}',
        decode(repeat('04', 32), 'hex'));
insert into dalsegno.api_keys (id, created_at, handle, name, created_by, scopes, sha256, campaigns)
values ('019aa2f1-0000-7000-8000-0000000000b1', now(), '00000000b1b1', 'bound', 'cli:ann@host', '{read,enqueue}',
        sha256('bound'), array[gen_random_uuid()]);
