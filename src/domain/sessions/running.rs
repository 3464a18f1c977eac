//! A session while a turn runs in it. Its begin and its end are written with the rest of the turn: [`crate::domain::turns`].

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, State};
use crate::domain::Failed;

/// What a turn leaves behind. `None` leaves a column as it is.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a> {
    pub state: State,
    /// How many messages it adds.
    pub n_messages: i64,
    /// All tokens its calls have used.
    pub tokens_used: i64,
    /// What its last call really occupied.
    pub context_tokens: Option<i64>,
    pub board_cursor: Option<i64>,
    pub expires_at: Option<DateTime<Utc>>,
    pub calibration: Option<&'a Value>,
    pub checkpoint: Option<&'a Value>,
    pub rebuild_because: Option<super::Reason>,
    pub kept: Kept<'a>,
    pub now: DateTime<Utc>,
}

/// What a provider that keeps the conversation itself has of it after the turn.
#[derive(Debug, Clone, Copy)]
pub enum Kept<'a> {
    AsBefore,
    /// It goes on behind this answer, and has heard everything up to it.
    Head {
        head: Uuid,
        /// The view that it is of.
        generation: i32,
        meter: &'a Value,
    },
    /// It has lost it: the next turn writes it anew from the messages.
    Lost,
}

/// What such a provider calls the conversation, and the login that it runs on: stored before its first call.
#[derive(Debug, Clone, Copy)]
pub struct Minted<'a> {
    pub external_session_id: &'a str,
    pub login: &'a str,
}

/// Takes a session from a run that is lost, whose turn has left so many messages. The caller holds its row and a larger lease. Must hit one row.
pub(crate) async fn abandon(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    n_messages: i64,
) -> Result<(), Error> {
    let abandoned = sqlx::query!(
        "update dalsegno.sessions set state = 'interrupted', running_turn = null, last_seq = last_seq + $2
          where id = $1 and running_turn is not null",
        id,
        n_messages,
    )
    .execute(executor)
    .await
    .map_err(Failed::to("take a session from a lost run"))?;
    if abandoned.rows_affected() == 1 { Ok(()) } else { Err(Error::Overtaken(id)) }
}
