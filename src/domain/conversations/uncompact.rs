//! Undoing a compaction.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{
    compactions,
    feed::{self, Kind},
    sessions::{self, Session},
};

/// Goes back to the view before the compaction that is shown.
pub async fn uncompact(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Session, compactions::Error> {
    // Read first, to tell a missing session from a closed one.
    if sessions::get(&mut *conn, id).await?.closed_at.is_some() {
        return Err(sessions::Error::Closed(id).into());
    }
    let generation = compactions::undo(&mut *conn, id, now).await?;
    let session = sessions::get(&mut *conn, id).await?;
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
