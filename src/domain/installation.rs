//! The installation: the identity of the service that this database belongs to, its settings, its schema and its size.

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::StatementError;

use crate::db;
pub use crate::db::AppliedMigration;

#[derive(Debug, Clone, Serialize)]
pub struct Installation {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// Minimum age in days of audit lines that a service may remove without owning the schema.
    pub audit_min_days: i32,
}

/// A setting of the process with its origin. Secrets are not shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Setting {
    pub key: String,
    pub value: Value,
    /// The built-in defaults, a file, a variable or a flag, in words.
    pub origin: String,
    /// True if the value is the built-in default.
    #[serde(default)]
    pub is_default: bool,
}

/// A table with its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TableSize {
    pub table: String,
    /// With indexes and long texts.
    pub bytes: i64,
    pub index_bytes: i64,
    /// As the statistics of the server estimate them.
    pub rows: i64,
    /// Rows that were added since the statistics began.
    pub added: i64,
    /// Rows that were removed since then.
    pub removed: i64,
    /// Its sizes on days of the last month on which a cleanup ran, the earliest first.
    #[serde(default)]
    #[schema(value_type = Vec<DaySize>)]
    pub days: Json<Vec<DaySize>>,
}

/// The size of a table on a day, with indexes and long texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DaySize {
    pub day: NaiveDate,
    pub bytes: i64,
}

/// Days of sizes that are shown.
const SHOWN_DAYS: Days = Days::new(30);
/// Days of sizes that are kept.
const KEPT_DAYS: Days = Days::new(400);

/// The database as its server sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DatabaseSize {
    /// Of the server.
    pub server_version: String,
    /// Of the whole database, with other schemas.
    pub bytes: i64,
    /// The beginning of the statistics. Null: since the creation of the database.
    pub statistics_since: Option<DateTime<Utc>>,
}

/// The installation with the state of its database.
#[derive(Debug, Clone)]
pub struct Report {
    pub installation: Installation,
    pub database: DatabaseSize,
    /// The largest first.
    pub tables: Vec<TableSize>,
    /// The newest first.
    pub migrations: Vec<AppliedMigration>,
}

/// Reads the installation, the sizes of its tables and its migrations.
pub async fn report(conn: &mut PgConnection, today: NaiveDate) -> Result<Report, StatementError> {
    read_report(conn, today).await.map_err(StatementError::to("read the installation"))
}

async fn read_report(conn: &mut PgConnection, today: NaiveDate) -> sqlx::Result<Report> {
    Ok(Report {
        installation: get(&mut *conn).await?,
        database: database_size(&mut *conn).await?,
        tables: table_sizes(&mut *conn, today).await?,
        migrations: db::history(&mut *conn).await?,
    })
}

/// Reads version, size and statistics of the database.
async fn database_size(executor: impl PgExecutor<'_>) -> sqlx::Result<DatabaseSize> {
    sqlx::query_as!(
        DatabaseSize,
        r#"select current_setting('server_version') as "server_version!", pg_database_size(current_database()) as "bytes!",
                  (select s.stats_reset from pg_stat_database as s where s.datname = current_database()) as "statistics_since?""#
    )
    .fetch_one(executor)
    .await
}

/// Lists the tables of the service, the largest first.
async fn table_sizes(
    executor: impl PgExecutor<'_>,
    today: NaiveDate,
) -> sqlx::Result<Vec<TableSize>> {
    sqlx::query_as!(
        TableSize,
        r#"select c.relname as "table!", pg_total_relation_size(c.oid) as "bytes!", pg_indexes_size(c.oid) as "index_bytes!",
                  coalesce(s.n_live_tup, 0) as "rows!", coalesce(s.n_tup_ins, 0) as "added!", coalesce(s.n_tup_del, 0) as "removed!",
                  coalesce((select jsonb_agg(jsonb_build_object('day', d.day, 'bytes', d.bytes) order by d.day)
                              from dalsegno.table_sizes as d where d.table_name = c.relname and d.day > $1), '[]') as "days!: Json<Vec<DaySize>>"
             from pg_class as c
             join pg_namespace as n on n.oid = c.relnamespace
             left join pg_stat_user_tables as s on s.relid = c.oid
            where n.nspname = 'dalsegno' and c.relkind in ('r', 'p')
            order by 2 desc, 1"#,
        today.checked_sub_days(SHOWN_DAYS).unwrap_or(today),
    )
    .fetch_all(executor)
    .await
}

/// Stores the size of each table on a day, and removes sizes that are old.
pub async fn record_sizes(conn: &mut PgConnection, today: NaiveDate) -> Result<(), StatementError> {
    let stored = sqlx::query!(
        "insert into dalsegno.table_sizes (table_name, day, bytes)
         select c.relname, $1, pg_total_relation_size(c.oid)
           from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
          where n.nspname = 'dalsegno' and c.relkind in ('r', 'p')
             on conflict (table_name, day) do update set bytes = excluded.bytes",
        today,
    );
    stored.execute(&mut *conn).await.map_err(StatementError::to("store the sizes of tables"))?;
    let before = today.checked_sub_days(KEPT_DAYS).unwrap_or(today);
    sqlx::query!("delete from dalsegno.table_sizes where day < $1", before)
        .execute(conn)
        .await
        .map(drop)
        .map_err(StatementError::to("remove old sizes of tables"))
}

/// Reads the only installation, which the first migration makes.
pub async fn get(executor: impl PgExecutor<'_>) -> sqlx::Result<Installation> {
    sqlx::query_as!(
        Installation,
        "select id, created_at, audit_min_days from dalsegno.installation"
    )
    .fetch_one(executor)
    .await
}

/// Formats the SQL that the schema's owner runs so that lines of the audit log are removed after `days`.
pub fn set_audit_min_days(days: u32) -> String {
    format!("as the owner: update dalsegno.installation set audit_min_days = {days}")
}
