insert into dalsegno.schedules (name, active_since, catch_up_secs, source, cron, time_zone, kind, queue, lane)
values ('purge', '2026-11-20', 86400, 'built_in', '0 0 2 * * *', 'UTC', 'purge', 'upkeep', 'purge');
insert into dalsegno.schedule_slots (schedule, slot, fired_at, job_id) values ('purge', '2026-11-21 02:00+00', '2026-11-21 02:00:03+00', 1);
