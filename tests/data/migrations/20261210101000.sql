select dalsegno.show_task_keys(c.id, '', array[a.key])
  from dalsegno.campaigns as c cross join lateral dalsegno.adopt_task_keys(c.id, '', array['order-1']) as a limit 1;
