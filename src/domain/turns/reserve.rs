//! A turn that needs more than was set aside at its begin.

use sqlx::PgConnection;

use super::{Begun, Error};
use crate::domain::{Amount, Failed, campaigns, sessions};

/// Sets `more` aside for a turn that runs. All or nothing: after an error the caller rolls back. Whoever ends the turn has to know
/// of it, or a part of the budget would be lost.
pub async fn reserve_more(
    conn: &mut PgConnection,
    turn: &Begun,
    more: Amount,
) -> Result<(), Error> {
    let hit = sqlx::query!(
        "update dalsegno.turns set reserved_micros = reserved_micros + $4, reserved_tokens = reserved_tokens + $5
          where session_id = $1 and number = $2 and lease = $3 and state = 'running'",
        turn.session_id,
        turn.turn,
        turn.lease,
        more.micros,
        more.tokens,
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to("set more aside for a turn"))?;
    if hit.rows_affected() == 0 {
        return Err(sessions::Error::Overtaken(turn.session_id).into());
    }
    Ok(campaigns::reserve(conn, turn.campaign_id, more).await?)
}
