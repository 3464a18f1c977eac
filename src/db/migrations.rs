//! Migrations: forward only, recorded in our own schema.
//!
//! An older binary runs on a newer schema, because deploys overlap: versions that this binary does not know are
//! accepted. A version below the first file of this binary belongs to an older series of migrations. Such a database is
//! refused, because it cannot be upgraded.
//!
//! Race: older binaries write meanwhile, and lock the same tables in another order. A migration is one transaction.
//! When it cannot get a lock, it rolls back and is retried. It gives up before Postgres looks for deadlocks, which
//! could end the transaction of another process. Statements that queue behind it wait no longer than the migration
//! itself.

use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{
    Connection as _, Executor as _, PgConnection, PgExecutor, PgPool,
    migrate::{Migrate as _, MigrateError, Migrator},
    postgres::PgPoolOptions,
};

use super::{Database, Error, Pooler};
use crate::causes::causes;

/// Keeps the history out of `public._sqlx_migrations`, which belongs to the user's own project.
const TABLE: &str = "dalsegno.migrations";

/// Interval at which a process that does not migrate looks for the schema.
const SCHEMA_PAUSE: Duration = Duration::from_secs(1);

/// Attempts of a migration while other transactions hold its tables, and the pause between two: a minute in all.
const TRIES: u32 = 60;
const TRY_PAUSE: Duration = Duration::from_millis(500);
/// Time that a migration waits for a lock: half of Postgres' own `deadlock_timeout`.
const LOCK_TIMEOUT: &str = "set lock_timeout = '500ms'";
/// For a migration with a `lock_timeout` of its own. The session that looks first for deadlocks is ended: it should be
/// ours.
const DEADLOCK_TIMEOUT: &str = "set deadlock_timeout = '100ms'";

static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema("dalsegno");
    migrator.dangerous_set_table_name(TABLE);
    migrator.set_ignore_missing(true);
    migrator
});

/// One migration that this binary knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub version: i64,
    pub description: String,
    pub applied: bool,
}

/// State of the schema, compared with this binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum MigrationState {
    Current,
    /// Written by a newer binary; everything this one needs is there.
    Newer,
    Pending {
        n_pending: usize,
    },
}

/// Applies the pending migrations. Several processes may call it at once: sqlx holds an advisory lock meanwhile.
///
/// Where none is pending it only reads: a standby refuses even `create schema if not exists`.
pub async fn migrate(pool: &PgPool) -> Result<(), Error> {
    super::require_supported_version(pool).await?;
    if is_applied(pool).await? {
        return Ok(());
    }
    let mut n_tries = 1;
    loop {
        match run(pool).await {
            // Another process holds the advisory lock and migrates: wait as long as it takes.
            Err(Error::MigrationState(error) | Error::Migrate(MigrateError::Execute(error)))
                if is_lock_conflict(&error) =>
            {
                n_tries = 0;
            }
            Err(Error::Migrate(MigrateError::ExecuteMigration(error, version)))
                if is_lock_conflict(&error) && n_tries < TRIES =>
            {
                let error = causes(&error);
                tracing::warn!(
                    version,
                    error,
                    "a migration timed out on locks of other transactions: trying again"
                );
            }
            Err(Error::Migrate(error)) if is_forbidden(&error) => {
                return Err(Error::MayNotMigrate(error));
            }
            ran => return ran,
        }
        n_tries += 1;
        tokio::time::sleep(TRY_PAUSE).await;
    }
}

impl Database {
    /// Applies the pending migrations, past a transaction pooler: they use settings and a lock of their session.
    pub async fn migrate(&self) -> Result<(), Error> {
        match (self.pooler, &self.session_options) {
            (Pooler::None, _) => migrate(&self.pool).await,
            (Pooler::Transaction, Some(direct)) => {
                let pool =
                    PgPoolOptions::new().max_connections(2).connect_lazy_with(direct.clone());
                let migrated = migrate(&pool).await;
                pool.close().await;
                migrated
            }
            (Pooler::Transaction, None) => {
                super::require_supported_version(&self.pool).await?;
                match migration_state(&self.pool).await? {
                    MigrationState::Pending { n_pending } => {
                        Err(Error::MigrateNeedsSession { n_pending })
                    }
                    MigrationState::Current | MigrationState::Newer => Ok(()),
                }
            }
        }
    }
}

/// Returns the newest migration that this binary knows.
pub fn newest_known() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Returns the first migration that this binary knows. All later ones have greater versions.
fn baseline() -> i64 {
    MIGRATOR.iter().map(|migration| migration.version).min().unwrap_or_default()
}

/// Lists the migrations of this binary, and if each is applied.
pub async fn status(pool: &PgPool) -> Result<Vec<Step>, Error> {
    let applied = applied_in(pool).await?;
    let step = |migration: &sqlx::migrate::Migration| Step {
        version: migration.version,
        description: migration.description.to_string(),
        applied: applied.contains(&migration.version),
    };
    Ok(MIGRATOR.iter().map(step).collect())
}

pub async fn migration_state(pool: &PgPool) -> Result<MigrationState, Error> {
    let applied = applied_in(pool).await?;
    let n_pending = MIGRATOR.iter().filter(|m| !applied.contains(&m.version)).count();
    Ok(match n_pending {
        0 if applied.iter().any(|version| !MIGRATOR.version_exists(*version)) => {
            MigrationState::Newer
        }
        0 => MigrationState::Current,
        n_pending => MigrationState::Pending { n_pending },
    })
}

/// Returns when all migrations of this binary are applied: by a service, or by `dalsegno migrate up`. In a deploy, a
/// worker of the new version may start before either.
pub async fn wait_for_schema(pool: &PgPool) -> Result<(), Error> {
    super::require_supported_version(pool).await?;
    if let MigrationState::Pending { n_pending } = migration_state(pool).await? {
        tracing::warn!(n_pending, "waiting for the schema: run `dalsegno migrate up`");
    }
    while let MigrationState::Pending { .. } = migration_state(pool).await? {
        tokio::time::sleep(SCHEMA_PAUSE).await;
    }
    Ok(())
}

/// A migration that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AppliedMigration {
    pub version: i64,
    pub description: String,
    pub installed_on: DateTime<Utc>,
}

/// Lists the migrations that were applied, the newest first.
pub async fn history(executor: impl PgExecutor<'_>) -> sqlx::Result<Vec<AppliedMigration>> {
    sqlx::query_as!(
        AppliedMigration,
        "select version, description, installed_on from dalsegno.migrations where success order by version desc"
    )
    .fetch_all(executor)
    .await
}

async fn applied_in(pool: &PgPool) -> Result<BTreeSet<i64>, Error> {
    let mut conn = pool.acquire().await.map_err(Error::MigrationState)?;
    applied(&mut conn).await
}

/// Reads the versions in the history. Fails if they belong to an older series.
async fn applied(conn: &mut PgConnection) -> Result<BTreeSet<i64>, Error> {
    let exists = sqlx::query_scalar!(
        r#"select to_regclass('dalsegno.migrations') is not null as "exists!""#
    );
    if !exists.fetch_one(&mut *conn).await.map_err(Error::MigrationState)? {
        return Ok(BTreeSet::new());
    }
    let versions = sqlx::query_scalar!("select version from dalsegno.migrations where success");
    let versions = versions.fetch_all(conn).await.map_err(Error::MigrationState)?;
    refuse_older(versions.into_iter().collect())
}

/// Refuses the history of an older series of migrations: it has no upgrade to the present schema.
fn refuse_older(applied: BTreeSet<i64>) -> Result<BTreeSet<i64>, Error> {
    let baseline = baseline();
    match applied.range(..baseline).next_back() {
        Some(&newest) => {
            Err(Error::OlderSchema { n_older: applied.range(..baseline).count(), newest, baseline })
        }
        None => Ok(applied),
    }
}

/// Returns true if all migrations of this binary are applied and unedited. sqlx reports edited ones when it runs.
async fn is_applied(pool: &PgPool) -> Result<bool, Error> {
    if let MigrationState::Pending { .. } = migration_state(pool).await? {
        return Ok(false);
    }
    let applied = async { pool.acquire().await?.list_applied_migrations(TABLE).await };
    let applied = applied.await.map_err(Error::Migrate)?;
    let is_edited = |known: &sqlx::migrate::Migration| {
        applied.iter().any(|it| it.version == known.version && it.checksum != known.checksum)
    };
    Ok(!MIGRATOR.iter().any(is_edited))
}

/// Migrates on a connection of its own: after a failure sqlx leaves its advisory lock on it, and closing it frees the
/// lock.
async fn run(pool: &PgPool) -> Result<(), Error> {
    let mut conn = pool.acquire().await.map_err(|error| Error::Migrate(error.into()))?.detach();
    let ran = run_on(&mut conn).await;
    // Applied migrations are committed, so an error of closing does not matter.
    let _ = conn.close().await;
    ran
}

async fn run_on(conn: &mut PgConnection) -> Result<(), Error> {
    conn.execute(LOCK_TIMEOUT).await.map_err(|error| Error::Migrate(error.into()))?;
    // Superusers may set it, and roles with that right; without it the migration runs, too.
    let _ = conn.execute(DEADLOCK_TIMEOUT).await;
    match applied(conn).await {
        // A role that may not read the history gets a better error from the migration, which names the missing right.
        Err(Error::MigrationState(error)) if sqlstate(&error).as_deref() == Some("42501") => {}
        found => {
            found?;
        }
    }
    MIGRATOR.run_direct(None, conn, false).await.map_err(Error::Migrate)
}

/// Returns true if a lock of another transaction ended it: by a deadlock (40P01) or `lock_timeout` (55P03).
fn is_lock_conflict(error: &sqlx::Error) -> bool {
    matches!(sqlstate(error).as_deref(), Some("40P01" | "55P03"))
}

/// SQLSTATE 42501, insufficient privilege.
fn is_forbidden(error: &MigrateError) -> bool {
    match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            sqlstate(cause).as_deref() == Some("42501")
        }
        _ => false,
    }
}

fn sqlstate(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}
