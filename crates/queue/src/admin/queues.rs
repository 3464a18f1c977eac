//! Queues, their counters and their pauses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::error::Error;

/// One queue, as `queue ls` shows it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Queue)]
pub struct QueueView {
    /// The name.
    pub queue: String,
    /// Since when nothing is claimed from it, if it is paused.
    pub paused_at: Option<DateTime<Utc>>,
    /// Why it is paused.
    pub pause_reason: Option<String>,
    /// Jobs that a free slot would take now.
    pub ready: i64,
    /// Jobs in a worker.
    pub running: i64,
    /// Jobs behind the head of their lane.
    pub blocked: i64,
    /// Jobs that wait for a time.
    pub scheduled: i64,
    /// Jobs that wait for a person.
    pub held: i64,
    /// Dead letters.
    pub dead: i64,
    /// Waiting time of the oldest ready job, in seconds.
    pub oldest_ready_secs: Option<f64>,
    /// Live workers that serve it.
    pub workers: i64,
}

/// The pause of a queue or group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The reason that its author gave; it may be empty.
    pub reason: String,
    /// Since when.
    pub paused_at: DateTime<Utc>,
}

/// The kind of thing that a pause covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseScope {
    /// A queue.
    Queue,
    /// A group, for instance a campaign.
    Group,
}

impl PauseScope {
    fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Group => "group",
        }
    }
}

/// Lists every queue that has jobs, workers or a pause.
pub async fn list_queues(executor: impl PgExecutor<'_>) -> Result<Vec<QueueView>, Error> {
    sqlx::query_file_as!(QueueView, "src/sql/queue_list.sql")
        .fetch_all(executor)
        .await
        .map_err(Error::of("list the queues"))
}

/// Loads one queue.
pub async fn find_queue(executor: impl PgExecutor<'_>, name: &str) -> Result<QueueView, Error> {
    let queues = list_queues(executor).await?;
    let found = queues.into_iter().find(|queue| queue.queue == name);
    found.ok_or_else(|| Error::UnknownQueue(name.to_owned()))
}

/// Counts the jobs of a queue that are to run now or later.
pub async fn count_waiting(executor: impl PgExecutor<'_>, queue: &str) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"SELECT coalesce(sum(jobs), 0)::bigint AS "waiting!" FROM dalsegno.job_counts
            WHERE queue = $1 AND state IN ('ready', 'blocked', 'scheduled', 'held')"#,
        queue
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("count waiting jobs"))
}

/// Stops claims from a queue or group until [`resume`]. Running jobs go on.
pub async fn pause(
    executor: impl PgExecutor<'_>,
    scope: PauseScope,
    name: &str,
    reason: &str,
) -> Result<(), Error> {
    sqlx::query!("SELECT dalsegno.pause($1, $2, $3)", scope.as_str(), name, reason)
        .execute(executor)
        .await
        .map(drop)
        .map_err(Error::of("pause"))
}

/// Reads the reason of a pause. `None`: it is not paused.
pub async fn pause_reason(
    executor: impl PgExecutor<'_>,
    scope: PauseScope,
    name: &str,
) -> Result<Option<String>, Error> {
    Ok(find_pause(executor, scope, name).await?.map(|pause| pause.reason))
}

/// Reads a pause. `None`: it is not paused.
pub async fn find_pause(
    executor: impl PgExecutor<'_>,
    scope: PauseScope,
    name: &str,
) -> Result<Option<Pause>, Error> {
    sqlx::query_as!(
        Pause,
        "SELECT reason, paused_at FROM dalsegno.pauses WHERE scope = $1 AND name = $2",
        scope.as_str(),
        name
    )
    .fetch_optional(executor)
    .await
    .map_err(Error::of("read a pause"))
}

/// Ends a pause. Returns false if it was not paused.
pub async fn resume(
    executor: impl PgExecutor<'_>,
    scope: PauseScope,
    name: &str,
) -> Result<bool, Error> {
    sqlx::query_scalar!(r#"SELECT dalsegno.resume($1, $2) AS "was_paused!""#, scope.as_str(), name)
        .fetch_one(executor)
        .await
        .map_err(Error::of("resume"))
}
