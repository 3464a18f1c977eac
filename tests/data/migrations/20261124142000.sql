update dalsegno.tasks set stop_asked_at = now() where false;
