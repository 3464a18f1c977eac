-- Calls the kind of the nightly cleanup `cleanup`, and deletions by age *delete* in the counts of jobs.
--
-- Changes rows only. Processes of earlier versions do not know the kind `cleanup`, and leave its jobs to newer ones.

-- Jobs in a state = all that entered it minus all that left it: the old kind loses its jobs, and the new one gains them.
with renamed as (
  update dalsegno.jobs as j set kind = 'cleanup' where j.kind = 'purge' returning j.queue, j.state
)
insert into dalsegno.transition_deltas (n, queue, kind, event, from_state, to_state)
select count(*), r.queue, c.kind, c.event, coalesce(c.from_state, r.state::text), coalesce(c.to_state, r.state::text)
  from renamed as r,
       (values ('purge', 'cancel', null, 'cancelled'), ('cleanup', 'enqueue', 'new', null)) as c (kind, event, from_state, to_state)
 group by 2, 3, 4, 5, 6;

update dalsegno.transition_totals set event = 'delete', to_state = 'deleted' where event = 'purge';
update dalsegno.transition_deltas set event = 'delete', to_state = 'deleted' where event = 'purge';
comment on column dalsegno.transition_deltas.event is
  'enqueue, claim, done, retry, snooze, give_back, fail, lost, cancel, promote, due, hold, release, redrive, delete.';
comment on column dalsegno.transition_deltas.to_state is 'State after; done, dead, cancelled or deleted for a job that ended.';
