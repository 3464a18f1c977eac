update dalsegno.cleanup_runs set events = 5;
