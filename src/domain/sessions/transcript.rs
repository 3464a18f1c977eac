//! The transcript of a session as people and programs see it.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, get};
use crate::domain::messages::{self, Span, Stored};

/// A stretch of the transcript, with a mark on what is not sent again.
pub async fn transcript(
    conn: &mut PgConnection,
    id: Uuid,
    span: Span,
) -> Result<Vec<Stored>, Error> {
    let session = get(&mut *conn, id).await?;
    let mut stored = messages::list(conn, id, span).await?;
    for message in &mut stored {
        message.rejected = session.rejected_turns.contains(&message.turn);
    }
    Ok(stored)
}
