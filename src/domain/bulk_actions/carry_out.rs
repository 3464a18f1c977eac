//! Carrying an action out, one task at a time.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Action, BulkAction, Error, State};
use crate::domain::{StatementError, tasks};

/// The outcome of an action for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Done,
    /// The action does not apply: the task has changed since, or it is a step, which only its flow retries.
    Skipped,
}

/// Marks an action as running, also when its dead job is tried again. Returns false if the action has ended.
pub async fn start(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    sqlx::query!(
        "update dalsegno.bulk_actions set state = 'running', started_at = coalesce(started_at, $2), ended_at = null, error = null
          where id = $1 and (ended_at is null or state = 'failed')",
        id,
        now,
    )
    .execute(executor)
    .await
    .map(|hit| hit.rows_affected() == 1)
    .map_err(StatementError::to("start a bulk action"))
}

/// Lists the tasks that come next.
pub async fn list_remaining_tasks(
    executor: impl PgExecutor<'_>,
    action: &BulkAction,
    limit: i64,
) -> Result<Vec<Uuid>, StatementError> {
    let (filter, states) = (&action.filter.0, action.action.states());
    tasks::list_matching(executor, filter, states, action.created_at, action.cursor, limit).await
}

/// Applies the action to one task and moves the cursor there, in the caller's transaction. After an error the caller rolls back. A retry leaves
/// out steps of flows: without their flows, the steps after them would stay cancelled.
pub async fn step(
    conn: &mut PgConnection,
    action: &BulkAction,
    task_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    match action.action {
        Action::Cancel => _ = tasks::cancel(&mut *conn, task_id, &action.reason, now).await?,
        Action::Retry => {
            if tasks::is_flow_step(&mut *conn, task_id).await? {
                return advance(conn, action, task_id, Step::Skipped).await;
            }
            tasks::retry(&mut *conn, task_id, now).await?;
        }
    }
    advance(conn, action, task_id, Step::Done).await
}

/// Cancels those of the tasks that can be cancelled together, in the caller's transaction, and returns the others. Moves the cursor up to
/// the first of these.
pub async fn cancel_many(
    conn: &mut PgConnection,
    action: &mut BulkAction,
    task_ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, Error> {
    let scope = tasks::CancelScope::Plain;
    let cancelled = tasks::cancel_many(&mut *conn, task_ids, scope, &action.reason, now).await?;
    let n_cancelled = i64::try_from(cancelled.len()).unwrap_or(i64::MAX);
    let cancelled: HashSet<Uuid> = cancelled.into_iter().collect();
    let passed = task_ids.iter().take_while(|id| cancelled.contains(id)).last().copied();
    let cursor = passed.or(action.cursor);
    let hit = sqlx::query!(
        "update dalsegno.bulk_actions set cursor = $2, done = done + $3
          where id = $1 and cursor is not distinct from $4 and state = 'running'",
        action.id,
        cursor,
        n_cancelled,
        action.cursor,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("record the progress of a bulk action"))?;
    if hit.rows_affected() != 1 {
        return Err(Error::Overtaken(action.id));
    }
    action.cursor = cursor;
    Ok(task_ids.iter().copied().filter(|id| !cancelled.contains(id)).collect())
}

/// Records the outcome for one task. Fails with [`Error::Overtaken`] if another run has moved the cursor.
pub async fn advance(
    executor: impl PgExecutor<'_>,
    action: &BulkAction,
    task_id: Uuid,
    step: Step,
) -> Result<(), Error> {
    let (done, skipped) = match step {
        Step::Done => (1, 0),
        Step::Skipped => (0, 1),
    };
    let hit = sqlx::query!(
        "update dalsegno.bulk_actions set cursor = $2, done = done + $3, skipped = skipped + $4
          where id = $1 and cursor is not distinct from $5 and state = 'running'",
        action.id,
        task_id,
        done,
        skipped,
        action.cursor,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("record the progress of a bulk action"))?;
    if hit.rows_affected() == 1 { Ok(()) } else { Err(Error::Overtaken(action.id)) }
}

pub async fn finish(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    end(executor, id, State::Done, now).await
}

/// Ends an action whose job was cancelled. Tasks that it has changed already stay as they are.
pub async fn cancel(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    end(executor, id, State::Cancelled, now).await
}

async fn end(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    state: State,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.bulk_actions set state = $2, ended_at = $3 where id = $1 and ended_at is null",
        id,
        state as State,
        now,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("end a bulk action"))
}
