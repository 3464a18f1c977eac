//! The two ends of a transaction whose owner is outside the domain.

use sqlx::{PgPool, Postgres, Transaction};

use super::Failed;

/// Nothing of it exists unless [`commit`] succeeds.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, Failed> {
    pool.begin().await.map_err(Failed::to("begin a transaction"))
}

pub async fn commit(transaction: Transaction<'static, Postgres>) -> Result<(), Failed> {
    transaction.commit().await.map_err(Failed::to("commit a transaction"))
}
