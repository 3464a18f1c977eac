-- Schedules: recurring jobs, and which of their moments have fired.
--
-- Any number of processes look at the same time. The process that inserts the row of a moment fires it, and enqueues its job in the
-- same transaction: a moment fires exactly once, and never without its job.

create table dalsegno.schedules (
  name text collate "C" not null
    constraint schedules_pkey primary key
    constraint schedules_name_form check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  created_at timestamptz not null default now(),
  active_since timestamptz not null,
  paused_at timestamptz,
  catch_up_secs integer not null constraint schedules_catch_up_secs_positive check (catch_up_secs > 0),
  source text not null constraint schedules_source_known check (source in ('built_in', 'user')),
  cron text not null,
  time_zone text not null,
  kind text not null,
  queue text not null,
  lane text,
  pause_reason text,
  payload jsonb not null default '{}',
  constraint schedules_pause_complete check ((paused_at is null) = (pause_reason is null))
);
comment on table dalsegno.schedules is 'Recurring jobs and their timetables.';
comment on column dalsegno.schedules.name is 'Name chosen by its author.';
comment on column dalsegno.schedules.created_at is 'When it was first written down.';
comment on column dalsegno.schedules.active_since is
  'Moments up to this one are not caught up: it did not exist yet, was paused, or had another timetable.';
comment on column dalsegno.schedules.paused_at is 'Since when nothing is enqueued; NULL: it is not paused.';
comment on column dalsegno.schedules.catch_up_secs is
  'How long after a moment its job is still enqueued, if no scheduler ran at the moment itself.';
comment on column dalsegno.schedules.source is 'built_in: written at each start from the configuration; user: left alone.';
comment on column dalsegno.schedules.cron is 'Six fields: second, minute, hour, day of month, month, day of week.';
comment on column dalsegno.schedules.time_zone is 'The time zone of the fields: a name of the IANA list.';
comment on column dalsegno.schedules.kind is 'The kind of the job.';
comment on column dalsegno.schedules.queue is 'The queue of the job.';
comment on column dalsegno.schedules.lane is 'The lane of the job; NULL: none.';
comment on column dalsegno.schedules.pause_reason is 'The reason that the person gave.';
comment on column dalsegno.schedules.payload is 'Input of the job.';

create table dalsegno.schedule_slots (
  schedule text collate "C" not null constraint schedule_slots_schedule references dalsegno.schedules (name) on delete cascade,
  slot timestamptz not null,
  fired_at timestamptz not null,
  job_id bigint,
  constraint schedule_slots_pkey primary key (schedule, slot)
);
comment on table dalsegno.schedule_slots is 'Moments of schedules that have fired. The primary key decides which process fires one.';
comment on column dalsegno.schedule_slots.schedule is 'The schedule.';
comment on column dalsegno.schedule_slots.slot is 'The moment that the timetable names.';
comment on column dalsegno.schedule_slots.fired_at is 'When it fired, by the clock of that process.';
comment on column dalsegno.schedule_slots.job_id is 'The job; it may have ended and be gone. NULL only within the transaction.';

-- A change of a schedule is rare, so that each one may notify: it moves the next moment, for which the schedulers wait.
create function dalsegno.announce_schedule_change() returns trigger language plpgsql as $body$
begin
    perform pg_notify('dalsegno', 'schedules');
    return null;
end
$body$;
comment on function dalsegno.announce_schedule_change() is 'NOTIFY for the schedulers of all processes: they compute the next moments anew.';

create trigger schedules_announce after insert or update or delete on dalsegno.schedules
  for each row execute function dalsegno.announce_schedule_change();
comment on trigger schedules_announce on dalsegno.schedules is 'Several rows of one transaction give one notification.';
