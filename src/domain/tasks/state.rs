//! State changes of open tasks: put off, and running again.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, end::ended_error};
use crate::domain::StatementError;

/// Counts that a task's turn was put off before it began, and returns how often in a row. Returns an error if the task has ended.
pub async fn count_wait(conn: &mut PgConnection, id: Uuid) -> Result<u32, Error> {
    let n_waits = sqlx::query_scalar!(
        "update dalsegno.tasks set n_waits = n_waits + 1 where id = $1 and state in ('queued', 'running') returning n_waits",
        id,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("postpone a task"))?;
    match n_waits {
        Some(n_waits) => Ok(u32::try_from(n_waits).unwrap_or(0)),
        None => Err(ended_error(conn, id).await),
    }
}

/// Records that a queued task runs: its turn, which has begun before, goes on. Returns an error if the task has ended.
pub async fn go_on(conn: &mut PgConnection, id: Uuid) -> Result<(), Error> {
    let hit = sqlx::query!(
        "update dalsegno.tasks set state = 'running' where id = $1 and state in ('queued', 'running')",
        id,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("go on with the turn of a task"))?;
    match hit.rows_affected() {
        1 => Ok(()),
        _ => Err(ended_error(conn, id).await),
    }
}
