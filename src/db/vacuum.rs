//! Vacuum of all tables: deleted rows stay in data files until then.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Error;

/// Limit of the wait for transactions that may still read the deleted rows.
const MAX_WAIT: Duration = Duration::from_secs(60);
const WAIT_PAUSE: Duration = Duration::from_millis(200);

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
    pub is_stopped: bool,
}

impl VacuumResult {
    pub fn is_complete(&self) -> bool {
        self.forbidden.is_empty() && !self.is_stopped
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
        let done = async {
            wait_for_older_transactions(&mut *conn).await?;
            vacuum_tables(&mut *conn, mode, &tables).await
        };
        match stop.run_until_cancelled(done).await {
            Some(forbidden) => vacuumed.forbidden.extend(forbidden?),
            None => return Ok(VacuumResult { is_stopped: true, ..vacuumed }),
        }
    }
    Ok(vacuumed)
}

/// Returns the names of tables that the role may not vacuum.
async fn vacuum_tables(
    conn: &mut PgConnection,
    mode: Vacuum,
    tables: &[Table],
) -> Result<Vec<String>, Error> {
    let (allowed, forbidden) = tables.iter().partition::<Vec<_>, _>(|table| table.is_allowed);
    for Table { name, .. } in allowed {
        // Only names of the catalog, quoted by the server, get into the statement.
        let statement = AssertSqlSafe(format!("vacuum ({}) {name}", mode.options()));
        conn.execute(sqlx::raw_sql(statement)).await.map_err(Error::Vacuum)?;
    }
    Ok(forbidden.into_iter().map(|table| table.name.clone()).collect())
}

/// Waits until no transaction is left that began before now. Postgres keeps deleted rows for these, and a vacuum leaves
/// the rows in their files without an error.
async fn wait_for_older_transactions(conn: &mut PgConnection) -> Result<(), Error> {
    let now = sqlx::query_scalar!(r#"select pg_current_xact_id()::text as "id!""#);
    let now = now.fetch_one(&mut *conn).await.map_err(Error::Vacuum)?;
    let deadline = Instant::now() + MAX_WAIT;
    while let Some(older) = older_transaction(&mut *conn, &now).await? {
        if Instant::now() >= deadline {
            return Err(Error::VacuumHeld(older));
        }
        tokio::time::sleep(WAIT_PAUSE).await;
    }
    Ok(())
}

/// Names the oldest transaction that began before transaction `id`.
async fn older_transaction(conn: &mut PgConnection, id: &str) -> Result<Option<String>, Error> {
    let older = sqlx::query_file!("src/db/older_transaction.sql", id);
    let older = older.fetch_optional(conn).await.map_err(Error::Vacuum)?;
    Ok(older.map(|older| match (older.pid, older.application) {
        (Some(pid), Some(application)) => {
            format!("the transaction of process {pid} ({application})")
        }
        (Some(pid), None) => format!("the transaction of process {pid}"),
        (None, _) => "a prepared transaction, or one of another role".to_owned(),
    }))
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
