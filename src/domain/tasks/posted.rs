//! Tasks that came from a post.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// A person's post as the root of all tasks that it leads to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tree {
    pub campaign_id: Uuid,
    pub root_post_id: Uuid,
}

/// Sets the post that tasks came from, and counts them in its tree. The tasks are added before the post, in the same transaction.
pub async fn set_post(
    conn: &mut PgConnection,
    ids: &[Uuid],
    post_id: Uuid,
    tree: Tree,
) -> Result<(), StatementError> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query!("update dalsegno.tasks set post_id = $2 where id = any ($1)", ids, post_id)
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("record the post of new tasks"))?;
    sqlx::query!(
        "insert into dalsegno.post_trees as t (campaign_id, root_post_id, n_tasks) values ($1, $2, cardinality($3::uuid[]))
         on conflict (campaign_id, root_post_id) do update set n_tasks = t.n_tasks + excluded.n_tasks",
        tree.campaign_id,
        tree.root_post_id,
        ids,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("count the tasks of a post"))
}

/// Returns the number of tasks that a person's post has led to.
pub async fn count_of_tree(
    executor: impl PgExecutor<'_>,
    tree: Tree,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        "select n_tasks from dalsegno.post_trees where campaign_id = $1 and root_post_id = $2",
        tree.campaign_id,
        tree.root_post_id,
    )
    .fetch_optional(executor)
    .await
    .map(Option::unwrap_or_default)
    .map_err(StatementError::to("count the tasks of a post"))
}
