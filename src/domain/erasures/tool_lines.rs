//! What tools did in a campaign, in the audit log: the names of what agents wrote are words, too.
//!
//! Lines are found by their place, because no index knows the campaign of a tool's line: all that were written since there is the
//! campaign are looked at, some in each transaction.

use chrono::TimeDelta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::domain::{audit, campaigns};

/// Lines that one transaction looks at.
const LINES: i64 = 10_000;
/// Clocks of hosts differ, and a line is made before it is numbered.
const SLACK: TimeDelta = TimeDelta::hours(1);

/// The line behind which the campaign may have some.
pub async fn line_before_first(conn: &mut PgConnection, campaign_id: Uuid) -> Result<i64, Error> {
    let campaign = campaigns::get(&mut *conn, campaign_id).await?;
    Ok(audit::line_before(conn, campaign.created_at - SLACK).await?)
}

/// Takes the words out of some lines behind this one, and says how far it has come; `None` at the end.
pub async fn erase_tool_lines(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    after: i64,
) -> Result<Option<i64>, Error> {
    Ok(audit::erase_words_of_tools(conn, campaign_id, after, LINES).await?)
}
