//! Removal of items by retention and erasure.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// Removes up to `limit` items of an erased campaign with all versions. Returns the number of items.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_memory($1, $2) as "n!""#, campaign_id, limit,)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove the memory of a campaign"))
}

/// Removes up to `limit` items that were revoked or expired before `until`. Returns their number.
///
/// Skips locked items: a writer is publishing them again.
pub async fn remove_ended(
    conn: &mut PgConnection,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_ended_memory($1, $2) as "n!""#, until, limit,)
        .fetch_one(conn)
        .await
        .map_err(StatementError::to("remove ended items of memories"))
}

/// Counts the items that were revoked or expired before `until`.
pub async fn count_ended(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.memory_items
            where (revoked_at is not null or expires_at is not null) and least(revoked_at, expires_at) < $1"#,
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count ended items of memories"))
}
