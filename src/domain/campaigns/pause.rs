//! The pause of a campaign, for people who find it paused.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    domain::audit::{self, PauseSubject},
    queue::admin,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignPause {
    /// The reason that its author gave; it may be empty.
    pub reason: String,
    pub paused_at: DateTime<Utc>,
    /// Its author, as in the audit log. `None`: the log does not have the pause, or not any more.
    pub paused_by: Option<String>,
}

/// Reads the pause of a campaign. `None`: it is not paused.
pub async fn find_pause(conn: &mut PgConnection, id: Uuid) -> Result<Option<CampaignPause>, Error> {
    let group = id.to_string();
    let found = admin::find_pause(&mut *conn, admin::PauseScope::Group, &group).await?;
    let Some(admin::Pause { reason, paused_at }) = found else { return Ok(None) };
    let paused_by =
        audit::pause_author(conn, PauseSubject::Campaign, &group, paused_at, Some(&reason)).await?;
    Ok(Some(CampaignPause { reason, paused_at, paused_by }))
}
