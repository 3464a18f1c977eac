//! The output of a running turn, stored while it arrives.
//!
//! One row beside the turn, replaced with each write. The end of the turn removes it. If the worker is lost, the run that ends the turn
//! in its place adds the output to the transcript as a partial answer.
//!
//! Race: a run that has lost its lease may still write. Each write locks the turn's row and names the lease, so it happens before the
//! turn is ended or not at all.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::{
    domain::{StatementError, ids, messages::New},
    transcript::{Message, Role},
};

/// The longest text that is stored, in bytes.
pub const MAX_BYTES: usize = 32 * 1024;

/// Stores the output of a turn in place of the previous one. Does nothing if the lease is lost or the turn has ended.
pub async fn store(
    executor: impl PgExecutor<'_>,
    (session_id, turn, lease): (Uuid, i32, i64),
    output: &New,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.partial_outputs as p (session_id, written_at, weight, turn, digest, text)
         select session_id, $4, $5, number, $6, $7 from dalsegno.turns
          where session_id = $1 and number = $2 and lease = $3 and state = 'running' for share
         on conflict (session_id) do update
            set written_at = excluded.written_at, weight = excluded.weight, turn = excluded.turn, digest = excluded.digest,
                text = excluded.text
          where p.turn <= excluded.turn",
        session_id,
        turn,
        lease,
        now,
        output.weight,
        output.digest.as_slice(),
        output.message.text,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store the partial output of a turn"))
}

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
