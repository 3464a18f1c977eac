//! What a person may do to a session.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, Reason, Session, ask_rebuild, get};
use crate::domain::{
    compactions,
    feed::{self, Kind},
};

/// Has the next task open a successor: one that takes over what it should remember, or a `fresh` one that takes nothing.
pub async fn reset(conn: &mut PgConnection, id: Uuid, fresh: bool) -> Result<Session, Error> {
    let because = if fresh { Reason::Fresh } else { Reason::Reset };
    ask_rebuild(&mut *conn, id, because).await?;
    get(conn, id).await
}

/// Goes back to the view before the compaction that is shown.
pub async fn uncompact(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Session, compactions::Error> {
    // First, so that a session that is not there is told from one that is closed.
    if get(&mut *conn, id).await?.closed_at.is_some() {
        return Err(Error::Closed(id).into());
    }
    let generation = compactions::undo(&mut *conn, id, now).await?;
    let session = get(&mut *conn, id).await?;
    let event = feed::New {
        campaign_id: Some(session.campaign_id),
        task_id: None,
        session_id: Some(id),
        kind: Kind::SessionUncompacted,
        data: json!({ "generation": generation }),
    };
    feed::append(conn, &[event], now).await?;
    Ok(session)
}
