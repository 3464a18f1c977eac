//! Many ends of tasks in one transaction, told together.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// Switches the trigger that tells webhooks of each end off, for the rest of the transaction or until it is switched on again. The
/// caller calls [`tell_of`] for the tasks that it has ended.
pub async fn tell_together(executor: impl PgExecutor<'_>, is_on: bool) -> Result<(), Failed> {
    let value = if is_on { "on" } else { "off" };
    sqlx::query!("select set_config('dalsegno.tell_together', $1, true)", value)
        .fetch_one(executor)
        .await
        .map(drop)
        .map_err(Failed::to("announce the ends of tasks"))
}

/// Writes what webhooks are told of these tasks, which have ended.
pub async fn tell_of(executor: impl PgExecutor<'_>, task_ids: &[Uuid]) -> Result<(), Failed> {
    sqlx::query!("select dalsegno.tell_webhooks_of($1)", task_ids)
        .fetch_one(executor)
        .await
        .map(drop)
        .map_err(Failed::to("tell webhooks of the ends of tasks"))
}
