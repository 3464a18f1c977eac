select dalsegno.show_task_keys(c.id, '', array['order-1']) from dalsegno.campaigns as c limit 1;
do $body$
begin
  assert (select array_agg(key::text) from dalsegno.idempotency_keys where starts_with(key, 'task:')) = array['task:of no task'];
  assert (select count(*) from dalsegno.idempotency_keys as i join dalsegno.tasks as t on coalesce(t.first_job_id, t.job_id) = i.job_id
           where i.key = dalsegno.task_key(t.campaign_id, dalsegno.caller_of(t.added_by), 'of an older version')) = 1;
end
$body$;
