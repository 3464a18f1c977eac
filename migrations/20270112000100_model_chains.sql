-- Model chains: the failures of a conversation are recorded for each model of its agent's chain, and a turn records which model it was given
-- to, and why earlier ones were skipped.
--
-- Changes: failovers.entries and turns.chain are new. The columns failures and since of failovers are for versions before this one.
alter table dalsegno.failovers add column entries jsonb;
comment on column dalsegno.failovers.entries is
  'Failures of the models of the chain: entry (provider/model), failures in a row, until (end of its rest) and because. NULL: written by a '
  'version before 20270112000100.';
comment on column dalsegno.failovers.failures is 'Used by versions before 20270112000100 only.';
comment on column dalsegno.failovers.since is 'Used by versions before 20270112000100 only.';

alter table dalsegno.turns add column chain jsonb;
comment on column dalsegno.turns.chain is
  'The model of the chain that the turn was given to, and the models before it that were skipped, with the reasons. NULL: the agent has one model.';
