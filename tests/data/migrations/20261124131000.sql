select count(*) from dalsegno.posts where campaign_id = '00000000-0000-7000-8000-000000000001' and sender = 'copywriter' and origin = 'agent';
