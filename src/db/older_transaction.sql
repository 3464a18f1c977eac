-- The oldest transaction that keeps rows which were deleted before transaction $1: one that runs in any database of the
-- server (prepared ones, too), because each snapshot taken meanwhile goes back to its begin; or a reader of this database.
-- Lazy vacuums keep nothing. Without rights on the activity of other roles the process is null, and their readers are not seen.
select holder.pid as "pid?", holder.application as "application?"
  from (select pg_snapshot_xmin(pg_current_snapshot()) <= $1::text::xid8 as is_running) as server
  left join lateral (
    select a.pid, nullif(a.application_name, '') as application
      from pg_stat_activity as a
     where a.pid <> pg_backend_pid()
       and a.pid not in (select v.pid from pg_stat_progress_vacuum as v)
       and (age(a.backend_xid) > age($1::text::xid8::xid)
            or a.datname = current_database() and age(a.backend_xmin) > age($1::text::xid8::xid))
     order by a.xact_start
     limit 1
  ) as holder on true
 where server.is_running or holder.pid is not null
