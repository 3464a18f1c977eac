//! The jobs of turns: each retry of a task has another one.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Lists which of these jobs ran turns of these tasks.
pub async fn jobs_of_tasks(
    executor: impl PgExecutor<'_>,
    tasks: &[Uuid],
    jobs: &[i64],
) -> Result<Vec<(Uuid, i64)>, StatementError> {
    let rows = sqlx::query!(
        "select distinct task_id, job_id from dalsegno.turns where task_id = any ($1) and job_id = any ($2)",
        tasks,
        jobs,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the jobs of turns"))?;
    Ok(rows.into_iter().map(|row| (row.task_id, row.job_id)).collect())
}
