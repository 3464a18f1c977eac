//! Pausing, resuming and closing a campaign, with what waits in it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    agent_pauses,
    campaigns::{self, Campaign, Error, Status},
};
use crate::queue::admin;

/// Stops new turns of the campaign until [`resume`]. Running turns go on.
pub async fn pause(conn: &mut PgConnection, id: Uuid, reason: &str) -> Result<Campaign, Error> {
    let campaign = campaigns::set_status(conn, id, Status::Paused, None).await?;
    admin::pause(conn, admin::PauseScope::Group, &id.to_string(), reason).await?;
    Ok(campaign)
}

pub async fn resume(conn: &mut PgConnection, id: Uuid) -> Result<Campaign, Error> {
    let campaign = campaigns::set_status(conn, id, Status::Active, None).await?;
    admin::resume(conn, admin::PauseScope::Group, &id.to_string()).await?;
    Ok(campaign)
}

/// Closes a campaign, which then accepts no more tasks. Queued tasks still run unless they are cancelled.
pub async fn close(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Campaign, Error> {
    let campaign = campaigns::set_status(conn, id, Status::Closed, Some(now)).await?;
    // A paused campaign, or an agent that is paused in it, would keep its queued tasks for ever.
    admin::resume(&mut *conn, admin::PauseScope::Group, &id.to_string()).await?;
    agent_pauses::resume_all_of(conn, id, now).await?;
    Ok(campaign)
}
