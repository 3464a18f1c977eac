update dalsegno.erasures set contents = dalsegno.contents_of_campaign(campaign_id), vacuumed_at = ended_at;
