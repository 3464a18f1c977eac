//! Stopping what runs in a session.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Cancelled, Error, cancel};
use crate::domain::{sessions, turns};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Interrupted {
    pub session_id: Uuid,
    pub task_id: Uuid,
    pub cancel: Cancelled,
}

/// Cancels the task whose turn runs in a session. Its worker stops the turn in order; what had arrived stays.
pub async fn interrupt(
    conn: &mut PgConnection,
    session_id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Interrupted, Error> {
    sessions::get(&mut *conn, session_id).await?;
    let latest = turns::of_session(&mut *conn, session_id, None, 1).await?;
    let running = latest.first().filter(|turn| turn.state == turns::State::Running);
    let task_id = running.ok_or(Error::NothingRuns(session_id))?.task_id;
    let cancel = cancel(conn, task_id, reason, now).await?;
    Ok(Interrupted { session_id, task_id, cancel })
}
