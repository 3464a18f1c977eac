//! The two ends of a transaction whose owner is outside the domain.

use sqlx::{PgPool, Postgres, Transaction, pool::PoolConnection};

use super::Failed;

/// Nothing of it exists unless [`commit`] succeeds.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, Failed> {
    pool.begin().await.map_err(Failed::to("begin a transaction"))
}

pub async fn commit(transaction: Transaction<'static, Postgres>) -> Result<(), Failed> {
    transaction.commit().await.map_err(Failed::to("commit a transaction"))
}

/// For a call that is a transaction of its own, in one round trip.
pub async fn connection(pool: &PgPool) -> Result<PoolConnection<Postgres>, Failed> {
    pool.acquire().await.map_err(Failed::to("get a connection"))
}
