-- Jobs of one lane: the first is ready, those behind it are blocked.
do $$ declare
  first bigint := (select e.job_id from dalsegno.enqueue('sample', lane => 'sample-in-order') as e);
  second bigint := (select e.job_id from dalsegno.enqueue('sample', lane => 'sample-in-order') as e);
  third bigint := (select e.job_id from dalsegno.enqueue_many('[{"kind": "sample", "lane": "sample-in-order"}]') as e);
begin
  if (select array_agg(j.state::text order by j.id) from dalsegno.jobs as j where j.id in (first, second, third)) <> '{ready,blocked,blocked}' then
    raise exception 'a lane has not one head';
  end if;
  perform dalsegno.cancel(j.id, 'sample') from unnest(array[third, second, first]) as j (id);
end $$;
