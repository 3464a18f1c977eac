//! Disk space of the database server. No statement reports it, so a test write finds out.

use sqlx::{Executor as _, PgPool};

use super::Error;

/// Settings that make a function's rows beyond `work_mem` go to a temporary file on the volume of the database.
const SPILL_EARLY: &str = "set local work_mem = '64kB'; set local temp_tablespaces = ''";

/// Returns true if the volume of the database takes half a megabyte more. The test writes a temporary file, which
/// leaves no rows and no WAL, needs no right, and works on a standby, too.
pub async fn has_space(pool: &PgPool) -> Result<bool, Error> {
    match spill(pool).await {
        Ok(()) => Ok(true),
        Err(error) => space_after(error),
    }
}

fn space_after(error: sqlx::Error) -> Result<bool, Error> {
    let Some(answer) = error.as_database_error() else { return Err(Error::ReadSpace(error)) };
    match answer.code().unwrap_or_default().as_ref() {
        "53100" => Ok(false),
        // Postgres has no code for a quota: the message is that of the C library.
        "XX000" if answer.message().ends_with("Disk quota exceeded") => Ok(false),
        // The role may not write temporary files, so the space stays unknown.
        "53400" => Ok(true),
        _ => Err(Error::ReadSpace(error)),
    }
}

async fn spill(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    tx.execute(SPILL_EARLY).await?;
    sqlx::query_scalar!(r#"select count(*) as "n!" from generate_series(1, 20000)"#)
        .fetch_one(&mut *tx)
        .await?;
    tx.rollback().await
}
