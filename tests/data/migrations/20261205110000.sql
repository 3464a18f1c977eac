update dalsegno.erasures set step = 'sessions' where ended_at is null;
