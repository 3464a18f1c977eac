//! Tasks that came from a post.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Names the post that tasks were made from, and the one of a person that has led to it. They are added before it is posted, in the
/// same transaction.
pub async fn set_post(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
    post_id: Uuid,
    root_post_id: Uuid,
) -> Result<(), Failed> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "update dalsegno.tasks set post_id = $2, root_post_id = $3 where id = any ($1)",
        ids,
        post_id,
        root_post_id,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("keep the post that tasks came from"))
}

/// How many tasks a person's post has led to.
pub async fn count_of_root(
    executor: impl PgExecutor<'_>,
    root_post_id: Uuid,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.tasks where root_post_id = $1"#,
        root_post_id,
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("count the tasks that a post has led to"))
}
