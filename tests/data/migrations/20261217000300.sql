insert into dalsegno.schedule_slots (schedule, slot, fired_at, job_id) values ('cleanup', '2026-11-22 02:00+00', '2026-11-22 02:00:03+00', 2);
