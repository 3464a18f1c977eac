//! The priority of a task.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, add::check_priority, get};
use crate::{domain::StatementError, queue::admin};

/// A waiting task after a change of its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskPriority {
    pub task_id: Uuid,
    pub priority: i16,
    /// The priority before the change.
    pub before: i16,
}

/// Changes the priority of a waiting task, for this and all later attempts. The tasks of a conversation keep their order.
///
/// Race: a worker claims the job at the same time. The row of the job decides: a claim skips a locked row, and this finds no row that
/// runs. As in a cancellation, the job is locked before the task.
pub async fn change_priority(
    conn: &mut PgConnection,
    id: Uuid,
    priority: i32,
) -> Result<TaskPriority, Error> {
    let priority = check_priority(priority)?;
    let task = get(&mut *conn, id).await?;
    if task.ended_at.is_some() {
        return Err(Error::Ended { id, state: task.state });
    }
    let before = admin::change_priority(&mut *conn, task.job_id, priority).await?;
    let Some(before) = before else { return Err(not_waiting(conn, id, task.job_id).await) };
    let hit = sqlx::query!(
        "update dalsegno.tasks set priority = $3 where id = $1 and job_id = $2 and ended_at is null",
        id,
        task.job_id,
        priority,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("change the priority of a task"))?;
    // Zero rows: the task has got another job. The caller rolls back.
    match hit.rows_affected() {
        1 => Ok(TaskPriority { task_id: id, priority, before }),
        _ => Err(not_waiting(conn, id, task.job_id).await),
    }
}

/// Returns the error for a task whose job did not wait.
async fn not_waiting(conn: &mut PgConnection, id: Uuid, job_id: i64) -> Error {
    match get(conn, id).await {
        Ok(task) if task.ended_at.is_some() => Error::Ended { id, state: task.state },
        Ok(task) if task.job_id != job_id => Error::Requeued(id),
        Ok(_) => Error::NotWaiting(id),
        Err(error) => error,
    }
}
