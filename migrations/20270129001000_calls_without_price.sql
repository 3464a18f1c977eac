-- Counts the calls of each day whose cost is 0 only because no price was set, so that cost reports tell them from free calls.
--
-- An older scheduler beside this version adds its calls with a count of 0.
--
-- Adds: a column of ledger_days. The next migration fills it.

alter table dalsegno.ledger_days add column calls_without_price bigint not null default 0;
comment on column dalsegno.ledger_days.calls_without_price is
  'Calls that used tokens, for whose model no price was set, and for which the provider reported no cost. Without the calls that a scheduler '
  'of an older version has added.';
