-- An erasure is whole when a worker has ended it that knew all that may hold words.
--
-- While two versions run beside each other, the older worker may take the job. It knows nothing of tables that came later, and says
-- that it is done. So a worker says which schema it knew, and one that knows more does the erasure again. The same after each
-- upgrade: it costs a look at what is left of a campaign, and there is nothing to be forgotten by whoever adds a table.

alter table dalsegno.erasures
  add column covers bigint,
  add column looked_again_at timestamptz;
comment on column dalsegno.erasures.covers is
  'The newest migration that the worker knew which has ended it. NULL: none has, or one that does not say, to which later tables are unknown.';
comment on column dalsegno.erasures.looked_again_at is 'When a worker that knows more has asked for it again.';
-- Those stay ended for whoever reads their receipts.
update dalsegno.erasures set covers = 0 where ended_at is not null;
