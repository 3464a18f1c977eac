update dalsegno.campaigns set version = 2, brief = 'Nine parts.' where id = '00000000-0000-7000-8000-000000000001';
insert into dalsegno.campaign_versions (campaign_id, version, changed_at, changed_by, brief, client_context)
values ('00000000-0000-7000-8000-000000000001', 2, now(), 'cli:ann@host', 'Nine parts.', null);
