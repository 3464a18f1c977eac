//! A session while a turn runs in it. Both statements name the lease; no row means that it is over.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, State};
use crate::domain::Failed;

/// The turn that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    pub turn: i32,
    /// The place of its first message.
    pub first_seq: i64,
}

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

/// Takes an open session that does not run for a new turn with `n_messages`. Only a lease that is not older than the
/// last one gets it.
pub(crate) async fn enter(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    lease: i64,
    n_messages: i64,
    minted: Option<Minted<'_>>,
    now: DateTime<Utc>,
) -> Result<Entered, Error> {
    let entered = sqlx::query!(
        r#"update dalsegno.sessions
              set state = 'running', lease = $2, turn_count = turn_count + 1, running_turn = turn_count + 1,
                  last_seq = last_seq + $3, used_at = $4,
                  external_session_id = coalesce($5, external_session_id), login = coalesce($6, login)
            where id = $1 and closed_at is null and running_turn is null and (lease is null or lease <= $2)
        returning turn_count, last_seq - $3 + 1 as "first_seq!""#,
        id,
        lease,
        n_messages,
        now,
        minted.map(|minted| minted.external_session_id),
        minted.map(|minted| minted.login),
    )
    .fetch_optional(executor)
    .await
    .map_err(Failed::to("begin a turn of a session"))?
    .ok_or(Error::Overtaken(id))?;
    Ok(Entered { turn: entered.turn_count, first_seq: entered.first_seq })
}

/// Ends the running turn, and gives the place of its first new message.
pub(crate) async fn leave(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    turn: i32,
    lease: i64,
    left: &Left<'_>,
) -> Result<i64, Error> {
    let (moves, head, meter) = match left.kept {
        Kept::AsBefore => (false, None, None),
        Kept::Head { head, meter } => (true, Some(head), Some(meter)),
        Kept::Lost => (true, None, None),
    };
    sqlx::query_scalar!(
        r#"update dalsegno.sessions
              set state = $4, running_turn = null, last_seq = last_seq + $5, token_count = token_count + $6,
                  context_tokens = coalesce($7, context_tokens), board_cursor = greatest(board_cursor, $8),
                  calibration = coalesce($9, calibration), checkpoint = coalesce($10, checkpoint), used_at = $11,
                  rebuild_because = coalesce(rebuild_because, $13),
                  -- In steps of an hour: each move costs an entry in every index of the table.
                  expires_at = case when $12 > expires_at + interval '1 hour' then $12 else expires_at end,
                  meter = coalesce($16, meter), head = case when $14 then $15 else head end,
                  head_seq = case when $14 then case when $15::uuid is not null then last_seq + $5 end else head_seq end,
                  head_generation = case when $14 then case when $15::uuid is not null then generation end
                                         else head_generation end
            where id = $1 and running_turn = $2 and lease = $3
        returning last_seq - $5 + 1 as "first_seq!""#,
        id,
        turn,
        lease,
        left.state as State,
        left.n_messages,
        left.tokens_used,
        left.context_tokens,
        left.board_cursor,
        left.calibration,
        left.checkpoint,
        left.now,
        left.expires_at,
        left.rebuild_because as Option<super::Reason>,
        moves,
        head,
        meter,
    )
    .fetch_optional(executor)
    .await
    .map_err(Failed::to("end a turn of a session"))?
    .ok_or(Error::Overtaken(id))
}

/// Takes a session from a run that is lost. The caller holds its row and a larger lease. Must hit one row.
pub(crate) async fn abandon(executor: impl PgExecutor<'_>, id: Uuid) -> Result<(), Error> {
    let abandoned = sqlx::query!(
        "update dalsegno.sessions set state = 'interrupted', running_turn = null where id = $1 and running_turn is not null",
        id,
    )
    .execute(executor)
    .await
    .map_err(Failed::to("take a session from a lost run"))?;
    if abandoned.rows_affected() == 1 { Ok(()) } else { Err(Error::Overtaken(id)) }
}
