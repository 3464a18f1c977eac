//! Transactions whose owner is outside the domain.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction, pool::PoolConnection};

use super::StatementError;

/// Source of transactions for an operation that takes several of them.
pub trait Transactions: Sync {
    fn begin(
        &self,
    ) -> impl Future<Output = Result<Transaction<'static, Postgres>, StatementError>> + Send;
}

/// Transactions without limits.
impl Transactions for PgPool {
    async fn begin(&self) -> Result<Transaction<'static, Postgres>, StatementError> {
        begin(self).await
    }
}

/// Begins a transaction. It has no effect unless [`commit`] succeeds.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, StatementError> {
    pool.begin().await.map_err(StatementError::to("begin a transaction"))
}

/// Begins a transaction with a limit on the run time of each statement. Postgres ends a statement that the caller has given up on.
pub async fn begin_with_limit(
    pool: &PgPool,
    longest: Duration,
) -> Result<Transaction<'static, Postgres>, StatementError> {
    // Both statements in one round trip. The text contains only a number.
    let begin = format!("begin; set local statement_timeout = {}", longest.as_millis());
    pool.begin_with(AssertSqlSafe(begin)).await.map_err(StatementError::to("begin a transaction"))
}

/// Begins a transaction that reads one snapshot, and whose statements are planned for their values, as optional conditions need it: `$1 is null or campaign_id = $1` has
/// no index in the general plan that other statements share ([`crate::db`]).
pub async fn begin_search(
    pool: &PgPool,
    longest: Option<Duration>,
) -> Result<Transaction<'static, Postgres>, StatementError> {
    let limit =
        longest.map(|longest| format!("set local statement_timeout = {}; ", longest.as_millis()));
    let limit = limit.unwrap_or_default();
    let begin = format!(
        "begin isolation level repeatable read, read only; {limit}set local plan_cache_mode = force_custom_plan"
    );
    pool.begin_with(AssertSqlSafe(begin)).await.map_err(StatementError::to("begin a transaction"))
}

/// Begins a transaction that reads one snapshot of the database, and whose statements are planned for their values.
pub async fn begin_snapshot(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, StatementError> {
    // The form of binary values is a setting of the server.
    let begin = "begin isolation level repeatable read, read only; set local plan_cache_mode = force_custom_plan; set local bytea_output = hex";
    pool.begin_with(begin).await.map_err(StatementError::to("begin a transaction"))
}

/// Begins a transaction as [`begin_with_limit`] does, with a limit on waiting for locks.
pub async fn begin_with_limits(
    pool: &PgPool,
    longest: Duration,
    for_lock: Duration,
) -> Result<Transaction<'static, Postgres>, StatementError> {
    let (longest, for_lock) = (longest.as_millis(), for_lock.as_millis());
    let begin = format!(
        "begin; set local statement_timeout = {longest}; set local lock_timeout = {for_lock}"
    );
    pool.begin_with(AssertSqlSafe(begin)).await.map_err(StatementError::to("begin a transaction"))
}

pub async fn commit(transaction: Transaction<'static, Postgres>) -> Result<(), StatementError> {
    transaction.commit().await.map_err(StatementError::to("commit a transaction"))
}

/// Acquires a connection, for a statement that is its own transaction and needs one round trip.
pub async fn connection(pool: &PgPool) -> Result<PoolConnection<Postgres>, StatementError> {
    pool.acquire().await.map_err(StatementError::to("get a connection"))
}
