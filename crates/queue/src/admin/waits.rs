//! Waiting jobs by the reason for which they wait.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::error::Error;

/// Live jobs that are read at most, so that a long queue costs no more than this.
pub const MAX_COUNTED: i64 = 10_000;

/// The waiting jobs of a queue with one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitCount {
    /// The queue.
    pub queue: String,
    /// The reason.
    pub reason: WaitReason,
    /// Number of jobs.
    pub jobs: i64,
    /// When the oldest of them was put on the queue.
    pub oldest_at: DateTime<Utc>,
    /// When the first of them is due, if they wait for a time.
    pub next_at: Option<DateTime<Utc>>,
    /// Since when the first of them is ready, if they wait for a slot or for the end of a pause.
    #[serde(default)]
    pub ready_at: Option<DateTime<Utc>>,
}

/// A reason for which a job waits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum WaitReason {
    /// A free slot of a worker.
    Slot,
    /// The end of a pause of its queue or its group.
    Pause,
    /// The job ahead in its lane.
    Lane,
    /// The release of its lane.
    LaneHold,
    /// Its time.
    Later,
    /// Its next attempt after an error.
    Retry,
    /// A time that a run has chosen, for another cause than `provider` and `batch`. As a filter it includes them.
    Snooze,
    /// A provider that is busy, refused a call, or cannot be reached.
    Provider,
    /// The answer of a provider to a batch.
    Batch,
    /// A condition that a run has found unmet, for example space in a budget.
    Condition,
    /// Its next attempt after its worker was lost.
    Crash,
    /// A signal of the application, for example the end of another task.
    Signal,
    /// Its release by a person.
    Person,
    /// A decision of a person after its failure.
    Failure,
}

impl WaitReason {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Slot,
        Self::Pause,
        Self::Lane,
        Self::LaneHold,
        Self::Later,
        Self::Retry,
        Self::Snooze,
        Self::Provider,
        Self::Batch,
        Self::Condition,
        Self::Crash,
        Self::Signal,
        Self::Person,
        Self::Failure,
    ];

    /// Returns the name, as lists of jobs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Pause => "pause",
            Self::Lane => "lane",
            Self::LaneHold => "lane_hold",
            Self::Later => "later",
            Self::Retry => "retry",
            Self::Snooze => "snooze",
            Self::Provider => "provider",
            Self::Batch => "batch",
            Self::Condition => "condition",
            Self::Crash => "crash",
            Self::Signal => "signal",
            Self::Person => "person",
            Self::Failure => "failure",
        }
    }
}

impl FromStr for WaitReason {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is not a reason for which jobs wait: use {known}")
        })
    }
}

/// Jobs that a person has held with the same words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCount {
    pub queue: String,
    pub reason: String,
    pub jobs: i64,
}

/// Counts the jobs that are held with one of these reasons, among the [`MAX_COUNTED`] oldest live jobs.
pub async fn count_held(
    executor: impl PgExecutor<'_>,
    reasons: &[String],
) -> Result<Vec<HeldCount>, Error> {
    sqlx::query_as!(
        HeldCount,
        r#"SELECT j.queue AS "queue!", j.hold_reason AS "reason!", count(*) AS "jobs!"
             FROM (SELECT * FROM dalsegno.jobs ORDER BY id LIMIT $2) AS j
            WHERE j.state = 'held' AND j.hold_by = 'person' AND j.hold_reason = ANY ($1)
            GROUP BY 1, 2"#,
        reasons,
        MAX_COUNTED,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("count held jobs by reason"))
}

/// Counts waiting jobs by queue and reason, among the [`MAX_COUNTED`] oldest live jobs.
pub async fn count_waits(executor: impl PgExecutor<'_>) -> Result<Vec<WaitCount>, Error> {
    sqlx::query_file_as!(WaitCount, "src/sql/waits.sql", MAX_COUNTED)
        .fetch_all(executor)
        .await
        .map_err(Error::of("count waiting jobs by reason"))
}
