insert into dalsegno.agent_pauses (id, campaign_id, agent, reason, paused_at, paused_by)
values ('00000000-0000-7000-8000-0000000000f1', '00000000-0000-7000-8000-000000000001', 'planner', 'too expensive', now(), 'cli:ann@host');
insert into dalsegno.agent_pauses (id, agent, reason, paused_at, paused_by, resumed_at, resumed_by)
values ('00000000-0000-7000-8000-0000000000f2', 'planner', 'a new prompt', now(), 'cli:ann@host', now(), 'key:ci:3f0c2a9be1d4');
select count(*) from dalsegno.agent_states;
select * from dalsegno.agent_statuses('00000000-0000-7000-8000-000000000001', now());
