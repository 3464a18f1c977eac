insert into dalsegno.sign_ins (id, created_at, expires_at, key_id, sha256, peer, browser)
values ('019aa2f1-0000-7000-8000-0000000000c1', '2026-11-22 10:00+00', '2026-11-22 22:00+00', '00000000-0000-7000-8000-0000000000a2',
        sha256('cookie one'), '10.1.2.3', 'Chromium');
insert into dalsegno.sign_ins (id, created_at, expires_at, ended_at, admin_key_sha256, sha256)
values ('019aa2f1-0000-7000-8000-0000000000c2', '2026-11-22 10:00+00', '2026-11-22 22:00+00', '2026-11-22 11:00+00',
        sha256('admin key'), sha256('cookie two'));
