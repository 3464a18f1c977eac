-- The nightly cleanup removes old events of the feed too.
alter table dalsegno.cleanup_runs
  add column events bigint not null default 0,
  add constraint cleanup_runs_events_not_negative check (events >= 0);
comment on column dalsegno.cleanup_runs.events is 'Events of the feed that were removed because of their age.';
