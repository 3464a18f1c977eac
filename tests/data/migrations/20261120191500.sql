update dalsegno.tasks set n_waits = 1 where id = '00000000-0000-7000-8000-000000000004';
