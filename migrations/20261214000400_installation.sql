-- The installation: its id, and functions that all nouns use.

create table dalsegno.installation (
  singleton boolean not null default true
    constraint installation_is_one_row primary key
    constraint installation_singleton_is_true check (singleton),
  id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now(),
  audit_min_days integer not null default 365 constraint installation_audit_min_days check (audit_min_days between 1 and 36500)
);
comment on table dalsegno.installation is
  'One row: the installation that owns this database. Its id names the service in telemetry and signatures.';
comment on column dalsegno.installation.singleton is 'Always true: the primary key admits one row.';
comment on column dalsegno.installation.audit_min_days is
  'A role that does not own the schema cannot remove younger lines of the audit log, even if audit.keep_days is shorter. The owner '
  'changes it.';

insert into dalsegno.installation default values;

------------------------------------------------------------------------------------------------ ids
create function dalsegno.time_ordered_uuid(at timestamptz default clock_timestamp()) returns uuid language sql volatile parallel safe as $body$
  -- Version 7: 48 bits of milliseconds, then the part of a random id behind its version.
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$body$;
comment on function dalsegno.time_ordered_uuid(timestamptz) is 'An id that sorts by its moment, to the millisecond.';

--------------------------------------------------------------------------------- append-only tables
create function dalsegno.refuse_change() returns trigger language plpgsql as $body$
begin
  -- Retention and erasure announce themselves for the length of their transaction. A grant could not say this: the
  -- service owns its tables, and the owner may do anything.
  if tg_op = 'DELETE' and current_setting('dalsegno.erasing', true) = 'on' then
    return null;
  end if;
  raise exception using errcode = 'DS405',
    message = format('dalsegno.%s is append-only: %s refused', tg_table_name, lower(tg_op)),
    hint = 'What was said and what it cost stays as it was written. Retention and erasure set dalsegno.erasing = on in their own transaction.';
end
$body$;
comment on function dalsegno.refuse_change() is 'Keeps a table append-only. One look per statement, so that appending costs nothing.';

create function dalsegno.has_owner_rights() returns boolean language sql stable
as $body$ select pg_has_role(session_user, current_user, 'member') $body$;
comment on function dalsegno.has_owner_rights() is
  'True in a function with the rights of its owner (security definer) if the session belongs to that owner, or to a role that may '
  'become it.';
