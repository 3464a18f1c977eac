//! The previous turn, for links of spans.

use sqlx::PgConnection;

use crate::{
    domain::turn_phases::{self, Begun},
    jobs::{Services, run_turn::error::Error},
    traces::Context,
};

/// Derives the span of the previous turn from its session and number, if traces are on.
pub async fn look_back(
    conn: &mut PgConnection,
    services: &Services,
    begun: &Begun,
) -> Result<Option<Context>, Error> {
    if !services.traces.are_wanted() {
        return Ok(None);
    }
    let session_id = turn_phases::session_before(conn, begun).await.map_err(Error::undone)?;
    Ok(session_id.map(|session_id| Context::of_turn(session_id, begun.turn - 1)))
}
