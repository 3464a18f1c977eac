//! The session that has a turn: numbers of turns continue from session to session.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::domain::{StatementError, sessions};

/// Finds the session that has a turn: this one, or one of those before and after it in its conversation.
///
/// A conversation that began again without its memory counts its turns again. Then a number may name several turns, which is an error.
pub async fn find_session(
    conn: &mut PgConnection,
    session_id: Uuid,
    number: i32,
) -> Result<Uuid, Error> {
    sessions::get(&mut *conn, session_id).await?;
    let before = sessions::lineage(&mut *conn, session_id).await?.into_iter();
    let before = before.filter(|(_, last_turn)| number <= *last_turn).map(|(id, _)| id);
    let after = sessions::successors(&mut *conn, session_id).await?;
    let line: Vec<Uuid> = before.chain(after).collect();
    let found = with_turn(conn, &line, number).await?;
    match found.as_slice() {
        _ if found.contains(&session_id) => Ok(session_id),
        [] => Err(Error::Unknown { session_id, number }),
        [one] => Ok(*one),
        _ => Err(Error::Ambiguous { session_id, number, sessions: found }),
    }
}

async fn with_turn(
    conn: &mut PgConnection,
    sessions: &[Uuid],
    number: i32,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select session_id from dalsegno.turns where session_id = any($1) and number = $2 order by started_at",
        sessions,
        number,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("find the session of a turn"))
}
