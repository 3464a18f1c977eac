//! The end of posts.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Removes the newest posts of a campaign that is erased, and says how many. The newest first, because answers refer to what is older;
/// places are not given out again.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(r#"select dalsegno.remove_posts($1, $2) as "n!""#, campaign_id, limit,)
        .fetch_one(executor)
        .await
        .map_err(Failed::to("remove the posts of a campaign"))
}
