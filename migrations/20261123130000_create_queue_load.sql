-- What an autoscaler asks: it may read this view and nothing else.
create view dalsegno.queue_load as
    select c.queue,
           case when exists (select from dalsegno.pauses as p where p.scope = 'queue' and p.name = c.queue) then 0
                else coalesce(sum(c.jobs) filter (where c.state = 'ready'), 0) end::bigint as ready,
           coalesce(sum(c.jobs) filter (where c.state = 'running'), 0)::bigint as running
      from dalsegno.job_counts as c
     group by c.queue;
comment on view dalsegno.queue_load is 'How many jobs of a queue could run now, and how many do: what the number of workers follows. What waits for a login or for its time is not ready, and nothing of a paused queue is.';
comment on column dalsegno.queue_load.ready is '0 while the queue is paused: more workers would not run more.';
comment on column dalsegno.queue_load.running is 'Counted too: a worker that runs something must not be taken away for want of more.';
