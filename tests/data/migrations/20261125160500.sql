select dalsegno.look_at_task_wait('00000000-0000-7000-8000-000000000202');
