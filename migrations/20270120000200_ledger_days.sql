-- Sums of the ledger by day, so that reports over months do not read each call.
--
-- The scheduler adds the rows of the ledger to the sums once they are settled, in the order of their ids. A report adds up the days and the
-- rows that are not in them yet, so it is exact at any time.
--
-- Race: ids are drawn before the commit. Row 6 can be there while row 5 is not committed, and a reader that goes on behind 6 would miss 5.
-- So the scheduler notes the newest id, and then a transaction number. Each writer draws its transaction number before its first id, which
-- the trigger ensures. Once all transactions before the noted one have ended, no row up to the noted id can appear.
--
-- Adds: ledger_days, ledger_sums.

create table dalsegno.ledger_days (
  campaign_id uuid not null,
  calls bigint not null,
  cost_micros bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_creation_tokens bigint not null,
  day date not null,
  agent text not null,
  provider text not null,
  model text not null,
  purpose text not null,
  constraint ledger_days_pkey primary key (day, campaign_id, agent, provider, model, purpose)
);
comment on table dalsegno.ledger_days is
  'Sums of the ledger by day, campaign, agent, provider, model and purpose, up to the row that dalsegno.ledger_sums names.';
comment on column dalsegno.ledger_days.day is 'In the time zone of dalsegno.ledger_sums.';

create index ledger_days_by_campaign on dalsegno.ledger_days (campaign_id, day);

create table dalsegno.ledger_sums (
  id integer not null default 1 constraint ledger_sums_pkey primary key,
  up_to bigint not null default 0,
  next_up_to bigint,
  next_after xid8,
  time_zone text not null default 'UTC',
  constraint ledger_sums_state_machine
    check (id = 1 and (next_up_to is null) = (next_after is null) and coalesce(next_up_to, up_to) >= up_to)
);
comment on table dalsegno.ledger_sums is 'How far the ledger is added up by day. One row.';
comment on column dalsegno.ledger_sums.up_to is 'The id of the last row of the ledger that is in the sums.';
comment on column dalsegno.ledger_sums.next_up_to is 'The id up to which rows are added next. NULL: nothing is noted.';
comment on column dalsegno.ledger_sums.next_after is 'Rows up to next_up_to are settled once all transactions before this one have ended.';
insert into dalsegno.ledger_sums default values;

create function dalsegno.draw_transaction_number() returns trigger language plpgsql as $body$
begin
  perform pg_current_xact_id();
  return null;
end
$body$;
comment on function dalsegno.draw_transaction_number() is
  'Gives the transaction its number before the rows of its statement get their ids.';

create trigger usage_transaction_number before insert on dalsegno.usage
  for each statement execute function dalsegno.draw_transaction_number();
