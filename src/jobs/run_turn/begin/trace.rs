//! The previous turn, for links of spans.

use sqlx::PgConnection;

use crate::{
    domain::turn_phases::{self, StartedTurn},
    jobs::{Services, run_turn::error::Error},
    traces::Context,
};

/// Derives the span of the previous turn from its session and number, if traces are on.
pub async fn previous_turn_span(
    conn: &mut PgConnection,
    services: &Services,
    begun: &StartedTurn,
) -> Result<Option<Context>, Error> {
    if !services.traces.is_enabled() {
        return Ok(None);
    }
    let session_id = turn_phases::session_before(conn, begun).await.map_err(Error::undone)?;
    Ok(session_id.map(|session_id| Context::of_turn(session_id, begun.turn - 1)))
}
