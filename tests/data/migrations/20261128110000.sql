select count(*) from dalsegno.memory_items where campaign_id = '00000000-0000-7000-8000-000000000001' and author = 'planner' and origin = 'agent';
