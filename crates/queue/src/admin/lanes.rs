//! Lanes and their members.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::error::Error;

/// Members of a lane that are listed.
const MAX_MEMBERS: usize = 100;

/// A lane with its first members.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Lane)]
pub struct LaneView {
    /// The name.
    pub lane: String,
    /// Why it is held, if it is.
    pub held: Option<String>,
    /// Since when it is held.
    pub held_at: Option<DateTime<Utc>>,
    /// Effect of a dead head on the lane: `continue` or `hold`.
    pub on_failure: String,
    /// Its members in order, at most a hundred.
    pub members: Vec<LaneMember>,
    /// True if it has more members.
    #[serde(default)]
    pub is_cut: bool,
}

/// A job in a lane.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LaneMember {
    /// The job.
    pub id: i64,
    /// Its kind.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// Its place; none while it is scheduled for later.
    pub lane_seq: Option<i64>,
    /// When it is due, or since when it is ready.
    pub run_at: DateTime<Utc>,
    /// True if it could run, but its queue or its group is paused.
    #[serde(default)]
    pub is_paused: bool,
}

/// A lane that is held.
#[derive(Debug, Clone)]
pub struct HeldLane {
    /// The name.
    pub lane: String,
    /// Why it is held.
    pub reason: String,
    /// Since when it is held.
    pub held_at: Option<DateTime<Utc>>,
    /// Number of its jobs, at most a thousand.
    pub jobs: i64,
}

/// Lists held lanes, those that are held longest first.
pub async fn held_lanes(executor: impl PgExecutor<'_>, limit: i64) -> Result<Vec<HeldLane>, Error> {
    sqlx::query_file_as!(HeldLane, "src/sql/held_lanes.sql", limit)
        .fetch_all(executor)
        .await
        .map_err(Error::of("list held lanes"))
}

/// Lists the names of held lanes, or of all lanes with jobs, the oldest lane first. An empty `after` begins the list; otherwise it
/// continues after this lane.
pub async fn list_lanes(
    conn: &mut sqlx::PgConnection,
    only_held: bool,
    after: &str,
    limit: i64,
) -> Result<Vec<String>, Error> {
    if !after.is_empty() {
        // Without its place in the list, the page would look like the end of it.
        sqlx::query_scalar!("SELECT id FROM dalsegno.lanes WHERE key = $1", after)
            .fetch_optional(&mut *conn)
            .await
            .map_err(Error::of("find a lane"))?
            .ok_or_else(|| unknown(after))?;
    }
    sqlx::query_file_scalar!("src/sql/list_lanes.sql", only_held, after, limit)
        .fetch_all(conn)
        .await
        .map_err(Error::of("list lanes"))
}

/// Loads a lane with its first members.
pub async fn find_lane(conn: &mut sqlx::PgConnection, lane: &str) -> Result<LaneView, Error> {
    let row = sqlx::query!(
        "SELECT id, hold_reason, held_at, on_failure FROM dalsegno.lanes WHERE key = $1",
        lane
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(Error::of("find a lane"))?
    .ok_or_else(|| unknown(lane))?;
    let mut members = sqlx::query_file_as!(
        LaneMember,
        "src/sql/lane_members.sql",
        row.id,
        // One more than are listed, which shows if there are more.
        MAX_MEMBERS as i64 + 1,
    )
    .fetch_all(conn)
    .await
    .map_err(Error::of("list the members of a lane"))?;
    let is_cut = members.len() > MAX_MEMBERS;
    members.truncate(MAX_MEMBERS);
    Ok(LaneView {
        lane: lane.to_owned(),
        held: row.hold_reason,
        held_at: row.held_at,
        on_failure: row.on_failure,
        members,
        is_cut,
    })
}

/// Stops a lane after its running job.
pub async fn hold_lane(
    executor: impl PgExecutor<'_>,
    lane: &str,
    reason: &str,
) -> Result<(), Error> {
    let known =
        sqlx::query_scalar!(r#"SELECT dalsegno.hold_lane($1, $2) AS "known!""#, lane, reason)
            .fetch_one(executor)
            .await
            .map_err(Error::of("hold a lane"))?;
    if known { Ok(()) } else { Err(unknown(lane)) }
}

/// Lets a held lane go on. A failed head that held it becomes a dead letter.
pub async fn release_lane(executor: impl PgExecutor<'_>, lane: &str) -> Result<(), Error> {
    let known = sqlx::query_scalar!(r#"SELECT dalsegno.release_lane($1) AS "known!""#, lane)
        .fetch_one(executor)
        .await
        .map_err(Error::of("release a lane"))?;
    if known { Ok(()) } else { Err(unknown(lane)) }
}

fn unknown(lane: &str) -> Error {
    Error::UnknownLane {
        message: format!("there is no lane `{lane}`"),
        hint: "`dalsegno lane ls` lists the lanes; a lane exists from its first job on".to_owned(),
    }
}
