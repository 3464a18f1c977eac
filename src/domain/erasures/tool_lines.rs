//! Audit lines of tools in an erased campaign: names of what agents wrote are texts, too.
//!
//! No index finds the tool lines of a campaign. All lines since its creation are therefore read, some in each transaction.

use chrono::TimeDelta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::domain::{audit, campaigns};

/// Lines that one transaction looks at.
const LINES: i64 = 10_000;
/// Margin before the campaign's creation: clocks of hosts differ, and a line gets its time before its number.
const SLACK: TimeDelta = TimeDelta::hours(1);

/// Returns a line before the first one that the campaign may have.
pub async fn line_before_first(conn: &mut PgConnection, campaign_id: Uuid) -> Result<i64, Error> {
    let campaign = campaigns::get(&mut *conn, campaign_id).await?;
    Ok(audit::line_before(conn, campaign.created_at - SLACK).await?)
}

/// Empties some lines behind `after`, and returns the last one that was read; `None` at the end.
pub async fn erase_tool_lines(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    after: i64,
) -> Result<Option<i64>, Error> {
    Ok(audit::erase_tool_data(conn, campaign_id, after, LINES).await?)
}
