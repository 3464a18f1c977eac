//! Vacuum of all tables: deleted rows stay in data files until then.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::Error;

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
    for (table, is_allowed) in tables(&mut *conn).await? {
        if !is_allowed {
            vacuumed.forbidden.push(table);
            continue;
        }
        // Only names of the catalog, quoted by the server, get into the statement.
        let statement = AssertSqlSafe(format!("vacuum ({}) {table}", mode.options()));
        match stop.run_until_cancelled(conn.execute(sqlx::raw_sql(statement))).await {
            Some(done) => done.map(drop).map_err(Error::Vacuum)?,
            None => {
                vacuumed.is_stopped = true;
                break;
            }
        }
    }
    Ok(vacuumed)
}

/// Lists quoted table names, and if the role may vacuum each. The statistics come last, because each `ANALYZE` replaces
/// a table's own.
async fn tables(conn: &mut PgConnection) -> Result<Vec<(String, bool)>, Error> {
    sqlx::query!(
        r#"select c.oid::regclass::text as "table!",
                  (pg_has_role(c.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
                   or case when current_setting('server_version_num')::int >= 170000
                           then has_table_privilege(c.oid, 'MAINTAIN') else false end) as "is_allowed!"
             from pg_class as c, pg_database as d
            where d.datname = current_database()
              and (c.relnamespace = 'dalsegno'::regnamespace and c.relkind = 'r' or c.oid = 'pg_catalog.pg_statistic'::regclass)
            order by c.relnamespace = 'pg_catalog'::regnamespace, c.relname"#
    )
    .map(|row| (row.table, row.is_allowed))
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
