//! The output of a turn that did not end with an answer.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The output that an unfinished turn has left in the transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftByTurn {
    /// True if there is a partial answer.
    pub answer: bool,
    /// True if there are tool calls, with or without their results.
    pub tool_calls: bool,
}

/// Reads the output that the last turn of a session has left. Reads no other messages.
pub async fn read_turn_output(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<LeftByTurn, StatementError> {
    sqlx::query_as!(
        LeftByTurn,
        r#"select coalesce(bool_or(partial), false) as "answer!",
                  coalesce(bool_or(tool_calls is not null), false) as "tool_calls!"
             from dalsegno.messages
            where session_id = $1 and turn = $2
              and seq > coalesce((select max(seq) from dalsegno.messages where session_id = $1 and turn < $2), 0)"#,
        session_id,
        turn,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the partial output of an interrupted turn"))
}
