//! Transcripts of sessions as the API shows them.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Session, get};
use crate::domain::messages::{self, Span, StoredMessage};

/// Reads a range of the transcript, and marks messages that are not sent again.
pub async fn transcript(
    conn: &mut PgConnection,
    id: Uuid,
    span: Span,
) -> Result<Vec<StoredMessage>, Error> {
    let session = get(&mut *conn, id).await?;
    Ok(marked(&session, messages::list(conn, id, span).await?))
}

/// Reads the last messages of a range before a place, the newest first.
pub async fn transcript_before(
    conn: &mut PgConnection,
    id: Uuid,
    span: Span,
    before_seq: i64,
) -> Result<Vec<StoredMessage>, Error> {
    let session = get(&mut *conn, id).await?;
    Ok(marked(&session, messages::list_before(conn, id, span, before_seq).await?))
}

fn marked(session: &Session, mut messages: Vec<StoredMessage>) -> Vec<StoredMessage> {
    for message in &mut messages {
        message.rejected = session.rejected_turns.contains(&message.turn);
    }
    messages
}
