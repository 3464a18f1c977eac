//! Disk space of the database server. No statement tells it, so it is tried out.

use sqlx::{Executor as _, PgPool};

use super::Error;

/// Rows of a function beyond `work_mem` go to a temporary file on the volume of the database.
const SPILL_EARLY: &str = "set local work_mem = '64kB'; set local temp_tablespaces = ''";

/// True if the volume of the database takes half a megabyte more. A temporary file tells: it leaves nothing behind, neither rows
/// nor WAL, and needs no right, also on a standby.
pub async fn has_space(pool: &PgPool) -> Result<bool, Error> {
    match spill(pool).await {
        Ok(()) => Ok(true),
        Err(error) => match error.as_database_error().and_then(|error| error.code()).as_deref() {
            Some("53100") => Ok(false),
            // The role may write no temporary files: there is no way to tell.
            Some("53400") => Ok(true),
            _ => Err(Error::ReadSpace(error)),
        },
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
