//! A turn whose worker is gone.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::domain::{
    Amount, Failed, campaigns, facts,
    sessions::{self, Live, resolve::Mode},
    tasks::Task,
};

/// Said of a turn that nobody ended.
const WHY: &str = "the worker was lost while the turn ran";

/// Ends the turn that a lost worker left running in `session`, whose row the caller has locked. What it had set aside
/// is given back: what its call has cost nobody can know any more.
///
/// The budget is locked before the task of the coming turn, against the order of [`crate::domain`]. Nobody waits in a
/// circle for that: whoever holds this task goes through the session's row first.
///
/// Its task is not touched: whoever calls this is about to run it again, or runs the one that comes after its end.
pub async fn interrupt_leftover(
    conn: &mut PgConnection,
    session: &Live,
    now: DateTime<Utc>,
) -> Result<(), sessions::Error> {
    // Read before it is written: RETURNING would give the zeros.
    let reserved = sqlx::query!(
        "select reserved_micros, reserved_tokens from dalsegno.turns
          where session_id = $1 and number = $2 and state = 'running' for update",
        session.id,
        session.turn_count,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Failed::to("find the turn that a lost worker left"))?;
    sqlx::query!(
        "update dalsegno.turns set state = 'interrupted', ended_at = $3, error = $4, reserved_micros = 0, reserved_tokens = 0
          where session_id = $1 and number = $2 and state = 'running'",
        session.id,
        session.turn_count,
        now,
        WHY,
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to("end the turn that a lost worker left"))?;
    sessions::abandon(&mut *conn, session.id).await?;
    if let Some(row) = reserved {
        let reserved = Amount { micros: row.reserved_micros, tokens: row.reserved_tokens };
        campaigns::settle(&mut *conn, session.campaign_id, reserved, Amount::ZERO).await?;
    }
    Ok(())
}

/// For a task that is about to end without another turn: ends the turn that a lost worker may have left, and the session
/// that was the task's own, which nobody would continue or close.
pub async fn clear_up(
    conn: &mut PgConnection,
    task: &Task,
    now: DateTime<Utc>,
) -> Result<(), sessions::Error> {
    interrupt_lost(&mut *conn, task, now).await?;
    if task.session_mode == Mode::None
        && let Some(closed) = sessions::close_ephemeral(&mut *conn, task.id, now).await?
    {
        facts::request(conn, task.campaign_id, closed).await?;
    }
    Ok(())
}

/// As [`interrupt_leftover`], for a task that is about to wait, or to end, without another turn. Does nothing, and says
/// false, if the conversation is not in a turn of this task.
pub async fn interrupt_lost(
    conn: &mut PgConnection,
    task: &Task,
    now: DateTime<Utc>,
) -> Result<bool, sessions::Error> {
    let Some(session_id) = task.session_id else { return Ok(false) };
    let session = match sessions::lock(&mut *conn, session_id).await {
        // Removed since, long after its last turn.
        Err(sessions::Error::Unknown(_)) => return Ok(false),
        session => session?,
    };
    let running = sqlx::query_scalar!(
        r#"select exists (select from dalsegno.turns where session_id = $1 and number = $2 and task_id = $3 and state = 'running')
               as "running!""#,
        session_id,
        session.turn_count,
        task.id,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(Failed::to("look for the turn that a lost worker left"))?;
    if running {
        interrupt_leftover(conn, &session, now).await?;
    }
    Ok(running)
}
