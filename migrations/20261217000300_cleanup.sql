-- Calls the schedule of the nightly deletion `cleanup`, and the tool that starts flows `flows_start`.
--
-- Changes rows only.

-- The scheduler writes its own row under the new name if there is none yet. Moments that have fired must not fire again under it.
insert into dalsegno.schedules (name, created_at, active_since, paused_at, catch_up_secs, source, cron, time_zone, kind, queue, lane,
                                pause_reason, payload)
select 'cleanup', created_at, active_since, paused_at, catch_up_secs, source, cron, time_zone, 'cleanup', queue, 'cleanup', pause_reason, payload
  from dalsegno.schedules where name = 'purge' and source = 'built_in'
    on conflict (name) do nothing;
update dalsegno.schedule_slots set schedule = 'cleanup'
 where schedule = 'purge' and not exists (select from dalsegno.schedule_slots where schedule = 'cleanup');
delete from dalsegno.schedules where name = 'purge' and source = 'built_in';

update dalsegno.tool_calls set tool = 'flows_start' where tool = 'workflows_start';
