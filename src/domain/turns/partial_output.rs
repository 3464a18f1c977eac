//! The output of a running turn, stored while it arrives.
//!
//! One row beside the turn, replaced with each write (`turn_phases::store_progress`). The end of the turn removes it. If the worker is
//! lost, the run that ends the turn in its place adds the output to the transcript as a partial answer.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{StatementError, ids, messages::New},
    transcript::{Message, Role},
};

/// The longest text that is stored, in bytes.
pub const MAX_BYTES: usize = 32 * 1024;

/// Removes the stored output of a lost worker's turn, and returns it as a message.
pub(super) async fn take(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: i32,
    now: DateTime<Utc>,
) -> Result<Option<New>, StatementError> {
    let action = "read the partial output of a lost turn";
    let row = sqlx::query!(
        "delete from dalsegno.partial_outputs where session_id = $1 and turn = $2 returning weight, digest, text",
        session_id,
        turn,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to(action))?;
    let Some(row) = row else { return Ok(None) };
    let digest = row.digest.as_slice().try_into();
    let digest = digest.map_err(|_| StatementError {
        action,
        source: sqlx::Error::Decode("its digest does not have 32 bytes".into()),
    })?;
    let (tool_calls, tool_call_id, tool_name) = (Vec::new(), None, None);
    let message = Message {
        role: Role::Assistant,
        text: row.text,
        tool_calls,
        tool_call_id,
        tool_name,
        media: Vec::new(),
    };
    Ok(Some(New { id: ids::new_at(now), message, weight: row.weight, digest, partial: true }))
}
