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
/// After an error the caller must roll back. The end of the turn needs the total; otherwise a part of the budget would stay reserved.
pub async fn reserve_more(
    conn: &mut PgConnection,
    turn: &StartedTurn,
    spent: Amount,
    ahead: Amount,
    now: DateTime<Utc>,
) -> Result<Amount, Error> {
    let more = (spent + ahead).saturating_sub(turn.reserved);
    if more.is_zero() {
        return Ok(turn.reserved);
    }
    let hit = sqlx::query!(
        r#"update dalsegno.turns set reserved_micros = reserved_micros + $4, reserved_tokens = reserved_tokens + $5
          where session_id = $1 and number = $2 and lease = $3 and state = 'running'
        returning coalesce(budgets, '{}') as "budgets!""#,
        turn.session_id,
        turn.turn,
        turn.lease,
        more.micros,
        more.tokens,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("reserve more for a turn"))?;
    let Some(hit) = hit else { return Err(sessions::Error::Overtaken(turn.session_id).into()) };
    let payers = Payers { campaign_id: turn.campaign_id, budgets: &hit.budgets };
    match budgets::reserve(conn, payers, more, now).await {
        Ok(()) => Ok(turn.reserved + more),
        Err(ReserveError::Refused(refusal)) => {
            let refusal = refusal.of_turn(turn.reserved, spent, ahead);
            Err(ReserveError::Refused(refusal).into())
        }
        Err(error) => Err(error.into()),
    }
}
