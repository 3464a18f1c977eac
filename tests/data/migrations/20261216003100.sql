-- A reading of a session that was removed.
insert into dalsegno.fact_extractions
       (session_id, to_seq, from_seq, campaign_id, ended_at, n_requests, n_found, n_new, outcome, agent)
select s.id, 4, 0, '00000000-0000-7000-8000-000000000001', now(), 1, 0, 0, 'done', 'planner'
  from (values ('00000000-0000-7000-8000-0000000000d1'::uuid)) as s (id) where not dalsegno.has_session(s.id);
