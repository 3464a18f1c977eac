//! Notifying webhooks of many task ends in one transaction.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Turns batching on or off for the rest of the transaction. While it is on, the trigger does not write deliveries at each end, and the
/// caller calls [`write_deliveries`] for the tasks that it has ended.
pub async fn set_batching(
    executor: impl PgExecutor<'_>,
    is_on: bool,
) -> Result<(), StatementError> {
    let value = if is_on { "on" } else { "off" };
    sqlx::query!("select set_config('dalsegno.tell_together', $1, true)", value)
        .fetch_one(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("enqueue deliveries for ended tasks"))
}

/// Writes the deliveries about these tasks, which have ended.
pub async fn write_deliveries(
    executor: impl PgExecutor<'_>,
    task_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("select dalsegno.tell_webhooks_of($1)", task_ids)
        .fetch_one(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("store deliveries for ended tasks"))
}
