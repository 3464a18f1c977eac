//! Additional reservations of a running turn.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Error, StartedTurn};
use crate::domain::{
    Amount, StatementError,
    budgets::{self, Payers, ReserveError},
    sessions,
};

/// Reserves the money and tokens that a running turn has spent and its next call may cost. Returns the new total of the reservation.
/// After an error the caller must roll back.
///
/// The amount is added to that of the row: an earlier commit may have succeeded without an answer, so that `turn` has less.
pub async fn reserve_more(
    conn: &mut PgConnection,
    turn: &StartedTurn,
    spent: Amount,
    ahead: Amount,
    now: DateTime<Utc>,
) -> Result<Amount, Error> {
    let needed = spent + ahead;
    if needed.saturating_sub(turn.reserved).is_zero() {
        return Ok(turn.reserved);
    }
    let hit = sqlx::query!(
        r#"with held as (
             -- Read before the update, because RETURNING would give the new amounts.
             select session_id, number, reserved_micros, reserved_tokens from dalsegno.turns
              where session_id = $1 and number = $2 and lease = $3 and state = 'running' for no key update)
           update dalsegno.turns as t
              set reserved_micros = greatest(held.reserved_micros, $4), reserved_tokens = greatest(held.reserved_tokens, $5)
             from held where t.session_id = held.session_id and t.number = held.number
        returning held.reserved_micros as "reserved_micros!", held.reserved_tokens as "reserved_tokens!", coalesce(t.budgets, '{}') as "budgets!""#,
        turn.session_id,
        turn.turn,
        turn.lease,
        needed.micros,
        needed.tokens,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("reserve more for a turn"))?;
    let Some(hit) = hit else { return Err(sessions::Error::Overtaken(turn.session_id).into()) };
    let reserved = Amount { micros: hit.reserved_micros, tokens: hit.reserved_tokens };
    let more = needed.saturating_sub(reserved);
    if more.is_zero() {
        return Ok(reserved);
    }
    let payers = Payers { campaign_id: turn.campaign_id, budgets: &hit.budgets };
    match budgets::reserve(conn, payers, more, now).await {
        Ok(()) => Ok(reserved + more),
        Err(ReserveError::Refused(refusal)) => {
            let refusal = refusal.of_turn(reserved, spent, ahead);
            Err(ReserveError::Refused(refusal).into())
        }
        Err(error) => Err(error.into()),
    }
}
