-- Stores in the record of a cleanup who asked for it. Readers looked it up in the audit log, where no line means the schedule, or that the line
-- is removed.
--
-- Processes of an older version write records without it. Older records get it from the lines that are left.
--
-- Adds: cleanup_runs.requested_by.

alter table dalsegno.cleanup_runs add column requested_by text;
comment on column dalsegno.cleanup_runs.requested_by is
  'The caller who asked for the run, as in the audit log; schedule: its schedule ran it. NULL: an older version ran it, or no caller is known.';

-- Two statements, each by the index on the subject.
update dalsegno.cleanup_runs as r set requested_by = a.actor_kind || case when a.actor = '' then '' else ':' || a.actor end
  from dalsegno.audit as a where a.action = 'cleanup.run' and a.subject = r.job_id::text;
update dalsegno.cleanup_runs as r set requested_by = a.actor_kind || case when a.actor = '' then '' else ':' || a.actor end
  from dalsegno.audit as a where a.action = 'schedule.run' and a.subject = 'cleanup' and a.data ->> 'job_id' = r.job_id::text;
