//! Nodes of tasks.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::New;
use crate::domain::StatementError;

/// Stores the nodes of tasks that were just added. Most tasks have none.
pub(super) async fn store_nodes(
    executor: impl PgExecutor<'_>,
    added: &[(&New<'_>, Uuid)],
) -> Result<(), StatementError> {
    let placed = added.iter().filter_map(|(new, id)| Some((*id, new.node?.name.as_str())));
    let (ids, nodes): (Vec<Uuid>, Vec<&str>) = placed.unzip();
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "update dalsegno.tasks as t set node = p.node from unnest($1::uuid[], $2::text[]) as p (id, node) where t.id = p.id",
        &ids,
        &nodes as &[&str],
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record the nodes of tasks"))
}
