update dalsegno.installation set audit_min_days = 30;
