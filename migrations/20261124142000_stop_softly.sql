-- A task whose turn is to stop where nothing is lost, and not at once.
--
-- An older binary does not look here: it lets the turn end by itself, which is a safe point too.
alter table dalsegno.tasks add column stop_asked_at timestamptz;
comment on column dalsegno.tasks.stop_asked_at is
  'Since when its turn is to stop at the next point where nothing is lost. No other turn of it begins; a retry forgets it.';
