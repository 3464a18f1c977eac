-- A task whose turn may not begin yet looks again after ever longer pauses, and says so once.
alter table dalsegno.tasks
  add column n_waits integer not null default 0 constraint tasks_n_waits_not_negative check (n_waits >= 0);
comment on column dalsegno.tasks.n_waits is
  'How often in a row its turn was put off before it began, for instance because the budget is set aside for others. 0 once it begins.';
