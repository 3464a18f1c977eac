//! Vacuum of all tables: deleted rows stay in data files until then.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Error;

/// Limit of the wait for what may still read the deleted rows.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Time after which the wait is logged.
const QUIET_WAIT: Duration = Duration::from_secs(1);
const WAIT_PAUSE: Duration = Duration::from_millis(200);
const UNKNOWN_HOLDER: &str =
    "a prepared transaction (`pg_prepared_xacts`), or a session of another role";

/// The kind of vacuum for each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vacuum {
    /// Removes dead rows from tables and indexes, beside readers and writers. Their bytes may stay in the unused part
    /// of a page until it is overwritten.
    Plain,
    /// Rewrites tables and indexes, and locks each of them meanwhile.
    Full,
}

/// The result of a vacuum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumResult {
    /// Tables that the role may not vacuum: it neither owns them nor has `MAINTAIN` on them (PostgreSQL 17).
    pub forbidden: Vec<String>,
    /// A process or a replication slot that may still read deleted rows. The tables after that are not vacuumed.
    pub held_by: Option<String>,
    pub is_stopped: bool,
}

impl VacuumResult {
    pub fn is_complete(&self) -> bool {
        self.forbidden.is_empty() && self.held_by.is_none() && !self.is_stopped
    }

    /// Says why tables were not vacuumed, and what to do.
    pub fn obstacles(&self) -> Option<String> {
        let forbidden = self.forbidden.first().map(|first| {
            format!(
                "the role may not vacuum {} tables, such as {first}: connect as their owner, or grant it MAINTAIN (PostgreSQL 17)",
                self.forbidden.len()
            )
        });
        let held = self.held_by.as_ref().map(|holder| {
            format!(
                "{holder} may still read deleted rows, and a vacuum would leave them in the files: end it (`select pg_terminate_backend(…)`, `rollback prepared`), or wait, and run `dalsegno erasure vacuum` again"
            )
        });
        let both: Vec<String> = [forbidden, held].into_iter().flatten().collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

/// Vacuums all tables of the schema, and the planner's statistics, which hold samples of values. It has a connection of
/// its own: a stopped vacuum goes on in the server until it has finished its table.
pub async fn vacuum(
    pool: &PgPool,
    mode: Vacuum,
    stop: &CancellationToken,
) -> Result<VacuumResult, Error> {
    let mut conn = pool.acquire().await.map_err(Error::Vacuum)?.detach();
    conn.execute("set statement_timeout = 0").await.map_err(Error::Vacuum)?;
    let vacuumed = vacuum_all(&mut conn, mode, stop).await?;
    if !vacuumed.is_stopped {
        // Behind a transaction pooler other clients use the session afterwards.
        conn.execute("reset statement_timeout").await.map_err(Error::Vacuum)?;
    }
    Ok(vacuumed)
}

async fn vacuum_all(
    conn: &mut PgConnection,
    mode: Vacuum,
    stop: &CancellationToken,
) -> Result<VacuumResult, Error> {
    let mut vacuumed = VacuumResult::default();
    let (own, statistics) = tables(&mut *conn).await?.into_iter().partition(|one| !one.is_catalog);
    // Each `ANALYZE` deletes statistics of its table, which a transaction that began meanwhile may read.
    let groups: [Vec<Table>; 2] = [own, statistics];
    for tables in groups {
        let group = vacuum_group(&mut *conn, mode, &tables, &mut vacuumed);
        match stop.run_until_cancelled(group).await {
            Some(done) => done?,
            None => vacuumed.is_stopped = true,
        }
        if vacuumed.is_stopped || vacuumed.held_by.is_some() {
            break;
        }
    }
    Ok(vacuumed)
}

async fn vacuum_group(
    conn: &mut PgConnection,
    mode: Vacuum,
    tables: &[Table],
    vacuumed: &mut VacuumResult,
) -> Result<(), Error> {
    let are_catalogs = tables.iter().any(|table| table.is_catalog);
    vacuumed.held_by = wait_for_readers(&mut *conn, are_catalogs).await?;
    if vacuumed.held_by.is_some() {
        return Ok(());
    }
    for Table { name, is_allowed, .. } in tables {
        if !is_allowed {
            vacuumed.forbidden.push(name.clone());
            continue;
        }
        // Only names of the catalog, quoted by the server, get into the statement.
        let statement = AssertSqlSafe(format!("vacuum ({}) {name}", mode.options()));
        conn.execute(sqlx::raw_sql(statement)).await.map_err(Error::Vacuum)?;
    }
    Ok(())
}

/// Waits until nothing is left that may read rows which were deleted before now, and returns what is left at the end. Postgres keeps such
/// rows, and a vacuum leaves them in their files without an error.
async fn wait_for_readers(
    conn: &mut PgConnection,
    of_catalogs: bool,
) -> Result<Option<String>, Error> {
    let now = sqlx::query_scalar!(r#"select pg_current_xact_id()::text as "id!""#);
    let now: String = now.fetch_one(&mut *conn).await.map_err(Error::Vacuum)?;
    let began = Instant::now();
    let mut is_logged = false;
    loop {
        let holder = sqlx::query_file_scalar!("src/db/older_transaction.sql", now, of_catalogs);
        let Some(holder) = holder.fetch_optional(&mut *conn).await.map_err(Error::Vacuum)? else {
            return Ok(None);
        };
        let holder = holder.unwrap_or_else(|| UNKNOWN_HOLDER.to_owned());
        if began.elapsed() >= MAX_WAIT {
            return Ok(Some(holder));
        }
        if !is_logged && began.elapsed() >= QUIET_WAIT {
            tracing::warn!(
                holder,
                "a vacuum waits, a minute at most, for what may still read deleted rows"
            );
            is_logged = true;
        }
        tokio::time::sleep(WAIT_PAUSE).await;
    }
}

struct Table {
    /// Quoted by the server.
    name: String,
    is_allowed: bool,
    is_catalog: bool,
}

async fn tables(conn: &mut PgConnection) -> Result<Vec<Table>, Error> {
    sqlx::query_as!(
        Table,
        r#"select c.oid::regclass::text as "name!",
                  (pg_has_role(c.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
                   or case when current_setting('server_version_num')::int >= 170000
                           then has_table_privilege(c.oid, 'MAINTAIN') else false end) as "is_allowed!",
                  c.relnamespace = 'pg_catalog'::regnamespace as "is_catalog!"
             from pg_class as c, pg_database as d
            where d.datname = current_database()
              and (c.relnamespace = 'dalsegno'::regnamespace and c.relkind = 'r' or c.oid = 'pg_catalog.pg_statistic'::regclass)
            order by c.relname"#
    )
    .fetch_all(conn)
    .await
    .map_err(Error::Vacuum)
}

impl Vacuum {
    fn options(self) -> &'static str {
        match self {
            Self::Plain => "analyze",
            Self::Full => "full, analyze",
        }
    }
}
