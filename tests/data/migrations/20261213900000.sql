select dalsegno.is_erased(campaign_id) from dalsegno.erasures;
