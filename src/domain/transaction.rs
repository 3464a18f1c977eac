//! Transactions whose owner is outside the domain.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction, pool::PoolConnection};

use super::Failed;

/// Begins the transactions of an operation that takes several of them.
pub trait Transactions: Sync {
    fn begin(&self) -> impl Future<Output = Result<Transaction<'static, Postgres>, Failed>> + Send;
}

/// Transactions without limits.
impl Transactions for PgPool {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        begin(self).await
    }
}

/// Nothing of it exists unless [`commit`] succeeds.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, Failed> {
    pool.begin().await.map_err(Failed::to("begin a transaction"))
}

/// The same, in which no statement runs longer than this: who gives up waiting for one ends it in Postgres, too.
pub async fn begin_within(
    pool: &PgPool,
    longest: Duration,
) -> Result<Transaction<'static, Postgres>, Failed> {
    // Both in one round trip. There is nothing but a number in it.
    let begin = format!("begin; set local statement_timeout = {}", longest.as_millis());
    pool.begin_with(AssertSqlSafe(begin)).await.map_err(Failed::to("begin a transaction"))
}

/// As [`begin_within`], in which no statement waits longer than `for_lock` for what another transaction holds.
pub async fn begin_waiting(
    pool: &PgPool,
    longest: Duration,
    for_lock: Duration,
) -> Result<Transaction<'static, Postgres>, Failed> {
    let (longest, for_lock) = (longest.as_millis(), for_lock.as_millis());
    let begin = format!(
        "begin; set local statement_timeout = {longest}; set local lock_timeout = {for_lock}"
    );
    pool.begin_with(AssertSqlSafe(begin)).await.map_err(Failed::to("begin a transaction"))
}

pub async fn commit(transaction: Transaction<'static, Postgres>) -> Result<(), Failed> {
    transaction.commit().await.map_err(Failed::to("commit a transaction"))
}

/// For a call that is a transaction of its own, in one round trip.
pub async fn connection(pool: &PgPool) -> Result<PoolConnection<Postgres>, Failed> {
    pool.acquire().await.map_err(Failed::to("get a connection"))
}
