//! Turns that wait for a message batch while no worker runs them.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::{StatementError, sessions};

/// Locks a turn that runs under this lease, so that no other run ends it before the transaction does. Returns false if it has ended.
pub async fn hold_running(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    number: i32,
    lease: i64,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select true as "is_running!" from dalsegno.turns
            where session_id = $1 and number = $2 and lease = $3 and state = 'running' for share"#,
        session_id,
        number,
        lease,
    )
    .fetch_optional(executor)
    .await
    .map(|row| row.is_some())
    .map_err(StatementError::to("lock a running turn"))
}

/// Gives a running turn to a later run of its job. Returns false if it has ended, or a later run has it.
pub async fn take_over(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: i32,
    lease: i64,
) -> Result<bool, StatementError> {
    if !sessions::take_lease(&mut *conn, session_id, number, lease).await? {
        return Ok(false);
    }
    sqlx::query!(
        "update dalsegno.turns set lease = $3 where session_id = $1 and number = $2 and state = 'running'",
        session_id,
        number,
        lease,
    )
    .execute(conn)
    .await
    .map(|hit| hit.rows_affected() == 1)
    .map_err(StatementError::to("take over the turn of a batch"))
}
