//! Removal of posts.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Removes up to `limit` posts of an erased campaign. Returns their number. Removes the newest first, because answers refer to older
/// posts. Their places are not reused.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_posts($1, $2) as "n!""#, campaign_id, limit,)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove the posts of a campaign"))
}
