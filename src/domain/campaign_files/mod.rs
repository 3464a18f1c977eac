//! Campaign files: a campaign as JSON Lines, to move it to another installation.
//!
//! ```text
//! {"format":"dalsegno campaign", …}          header: version, schema, campaign, columns of each table
//! {"table":"sessions","row":{…}}             one line per row, table by table; a row comes after those that it refers to
//! {"rows":{"sessions":3, …},"sha256":"…"}    trailer: counts, and the digest of all bytes before it
//! ```
//!
//! The rows are those of the tables, as Postgres writes them as JSON. A list in code says which tables belong to a campaign
//! ([`tables()`]) and which do not ([`LEFT_OUT`]); the columns are those of the database. Ids stay, because links and references
//! outside of the database name them. Numbers that an installation counts for itself (jobs, lines of the ledger) are replaced by
//! new ones, and its leases are dropped.
//!
//! Both directions hold a few rows at a time. An export is one snapshot, an import one transaction: a file that was cut or changed adds
//! nothing. No task runs twice: an export refuses a campaign in which something runs or may begin, and the import pauses it.

mod error;
mod export;
mod format;
mod import;
mod tables;

use std::collections::BTreeMap;

use sqlx::{PgConnection, PgPool};

pub use self::{
    error::Error,
    export::{ExportResult, export},
    format::schema,
    import::{Import, ImportResult, import},
    tables::{LEFT_OUT, Table, tables},
};
use super::StatementError;
use crate::db::{self, MigrationState};

/// Number of rows by table.
pub type Counts = BTreeMap<String, u64>;

/// Returns the version of the schema, which has to be the one that this binary was built for: tables that it does not know would be
/// missing in the file.
async fn schema_version(pool: &PgPool) -> Result<i64, Error> {
    match db::migration_state(pool).await.map_err(Error::Migrations)? {
        MigrationState::Current => Ok(db::newest_known()),
        MigrationState::Newer => Err(Error::NewerDatabase),
        MigrationState::Pending { n_pending } => Err(Error::Pending { n_pending }),
    }
}

/// Lists the columns of each table, without those that the database computes.
async fn columns_of_tables(
    conn: &mut PgConnection,
) -> Result<BTreeMap<String, Vec<String>>, StatementError> {
    let rows = sqlx::query!(
        r#"select c.relname::text as "table!", array_agg(a.attname::text order by a.attnum) as "columns!"
             from pg_class as c
             join pg_namespace as n on n.oid = c.relnamespace
             join pg_attribute as a on a.attrelid = c.oid
            where n.nspname = 'dalsegno' and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
            group by c.relname"#
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("list the columns of the tables"))?;
    Ok(rows.into_iter().map(|row| (row.table, row.columns)).collect())
}
