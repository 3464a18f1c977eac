//! The end of items: retention and erasure.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::Failed;

/// Removes some items of a campaign that is erased with all their versions, and says how many items went.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(r#"select dalsegno.remove_memory($1, $2) as "n!""#, campaign_id, limit,)
        .fetch_one(executor)
        .await
        .map_err(Failed::to("remove the memory of a campaign"))
}

/// Removes some of those that were revoked or have expired before `until`, and says how many.
///
/// One that is published again meanwhile is held by its writer, and passed over.
pub async fn remove_ended(
    conn: &mut PgConnection,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(r#"select dalsegno.remove_ended_memory($1, $2) as "n!""#, until, limit,)
        .fetch_one(conn)
        .await
        .map_err(Failed::to("remove what holds no more from memories"))
}

/// How many that would be.
pub async fn count_ended(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.memory_items
            where (revoked_at is not null or expires_at is not null) and least(revoked_at, expires_at) < $1"#,
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("count what holds no more in memories"))
}
