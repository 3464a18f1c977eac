//! Tasks that came from a post.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Names the post that tasks were made from. They are added before it is posted, in the same transaction.
pub async fn set_post(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    post_id: Uuid,
) -> Result<(), Failed> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query!("update dalsegno.tasks set post_id = $2 where id = any ($1)", ids, post_id)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(Failed::to("keep the post that tasks came from"))
}
