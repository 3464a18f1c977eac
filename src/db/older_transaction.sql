-- What keeps rows that were deleted before transaction $1. A transaction that runs in any database of the server (prepared ones, too), because
-- each snapshot taken meanwhile goes back to its begin. A reader of this database, or of a standby that reports what it reads: these belong to
-- no database. A replication slot; those of logical replication ($2) keep the rows of catalogs. Lazy vacuums keep nothing.
-- Without rights on the activity of other roles the name is null, and their readers are not seen.
select holder.name as "name?"
  from (select pg_snapshot_xmin(pg_current_snapshot()) <= $1::text::xid8 as is_running, age($1::text::xid8::xid) as age) as since
  left join lateral (
    select 'process ' || a.pid || coalesce(' (' || nullif(a.application_name, '') || ')', '') as name, a.xact_start as began_at
      from pg_stat_activity as a
     where a.pid <> pg_backend_pid()
       and a.pid not in (select v.pid from pg_stat_progress_vacuum as v)
       and (age(a.backend_xid) > since.age
            or coalesce(a.datname = current_database(), true) and age(a.backend_xmin) > since.age)
    union all
    select 'the replication slot ' || s.slot_name, null
      from pg_replication_slots as s
     where age(s.xmin) > since.age
        or $2::boolean and coalesce(s.database = current_database(), true) and age(s.catalog_xmin) > since.age
    order by began_at
    limit 1
  ) as holder on true
 where since.is_running or holder.name is not null
