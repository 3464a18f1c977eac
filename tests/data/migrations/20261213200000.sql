select dalsegno.measure_erasure(campaign_id), dalsegno.left_of_campaign(campaign_id) from dalsegno.erasures where ended_at is null;
