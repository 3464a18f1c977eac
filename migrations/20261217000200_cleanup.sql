-- Calls the nightly deletion *cleanup* in jobs and schedules, and deletions by age *delete* in the counts of jobs.
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

-- The scheduler writes its own row under the new name if there is none yet. Moments that have fired must not fire again under it.
insert into dalsegno.schedules (name, created_at, active_since, paused_at, catch_up_secs, source, cron, time_zone, kind, queue, lane,
                                pause_reason, payload)
select 'cleanup', created_at, active_since, paused_at, catch_up_secs, source, cron, time_zone, 'cleanup', queue, 'cleanup', pause_reason, payload
  from dalsegno.schedules where name = 'purge' and source = 'built_in'
    on conflict (name) do nothing;
update dalsegno.schedule_slots set schedule = 'cleanup'
 where schedule = 'purge' and not exists (select from dalsegno.schedule_slots where schedule = 'cleanup');
delete from dalsegno.schedules where name = 'purge' and source = 'built_in';

update dalsegno.transition_totals set event = 'delete', to_state = 'deleted' where event = 'purge';
update dalsegno.transition_deltas set event = 'delete', to_state = 'deleted' where event = 'purge';
comment on column dalsegno.transition_deltas.event is
  'enqueue, claim, done, retry, snooze, give_back, fail, lost, cancel, promote, due, hold, release, redrive, delete.';
comment on column dalsegno.transition_deltas.to_state is 'State after; done, dead, cancelled or deleted for a job that ended.';

update dalsegno.tool_calls set tool = 'flows_start' where tool = 'workflows_start';
