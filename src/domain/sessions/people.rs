//! Changes to a session by people.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Reason, Session, ask_rebuild, get, open::ask_rebuild_all};
use crate::domain::{
    StatementError,
    feed::{self, Kind},
};

/// Has the next task open a successor, which inherits the memory, or nothing if `fresh`. A running turn is not disturbed.
pub async fn reset(
    conn: &mut PgConnection,
    id: Uuid,
    fresh: bool,
    now: DateTime<Utc>,
) -> Result<Session, Error> {
    ask_rebuild(&mut *conn, id, because(fresh)).await?;
    let session = get(&mut *conn, id).await?;
    feed::append(conn, &[reset_event(session.campaign_id, id, fresh)], now).await?;
    Ok(session)
}

/// Resets several sessions of a campaign. Returns those that were open.
pub async fn reset_some(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    ids: &[Uuid],
    fresh: bool,
    now: DateTime<Utc>,
) -> Result<Vec<Uuid>, StatementError> {
    let reset = ask_rebuild_all(&mut *conn, ids, because(fresh)).await?;
    let events: Vec<_> = reset.iter().map(|id| reset_event(campaign_id, *id, fresh)).collect();
    feed::append(conn, &events, now).await?;
    Ok(reset)
}

fn because(fresh: bool) -> Reason {
    if fresh { Reason::Fresh } else { Reason::Reset }
}

fn reset_event(campaign_id: Uuid, session_id: Uuid, fresh: bool) -> feed::New {
    feed::New {
        campaign_id: Some(campaign_id),
        task_id: None,
        session_id: Some(session_id),
        kind: Kind::SessionReset,
        data: json!({ "fresh": fresh }),
    }
}

/// Brings the expiry of a session forward to `at`: a later task finds it expired. A running turn counts as use and postpones the expiry
/// again. Returns an error if the session is closed.
pub async fn expire(
    conn: &mut PgConnection,
    id: Uuid,
    at: DateTime<Utc>,
) -> Result<Session, Error> {
    let moved = sqlx::query!(
        "update dalsegno.sessions set expires_at = least(expires_at, $2) where id = $1 and closed_at is null",
        id,
        at,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("let a session expire"))?;
    let session = get(conn, id).await?;
    if moved.rows_affected() == 1 { Ok(session) } else { Err(Error::Closed(id)) }
}
