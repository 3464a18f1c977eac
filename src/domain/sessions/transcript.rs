//! Transcripts of sessions as the API shows them.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, get};
use crate::domain::messages::{self, Span, StoredMessage};

/// Reads a range of the transcript, and marks messages that are not sent again.
pub async fn transcript(
    conn: &mut PgConnection,
    id: Uuid,
    span: Span,
) -> Result<Vec<StoredMessage>, Error> {
    let session = get(&mut *conn, id).await?;
    let mut stored = messages::list(conn, id, span).await?;
    for message in &mut stored {
        message.rejected = session.rejected_turns.contains(&message.turn);
    }
    Ok(stored)
}
