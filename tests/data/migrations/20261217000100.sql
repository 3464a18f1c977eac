update dalsegno.paused_credentials set until = '2026-11-22' where credential = 'main';
