select * from dalsegno.agent_statuses('00000000-0000-7000-8000-000000000001', now());
