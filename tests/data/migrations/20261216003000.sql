-- An event that the index has, and one that it has not.
insert into dalsegno.feed (created_at, campaign_id, session_id, kind, data)
select now(), '00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000020', k.kind, '{"job_id": 1}'
  from (values ('session.compaction_not_needed'), ('session.compacted')) as k (kind);
