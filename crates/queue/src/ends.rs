//! The statements that end a run. Each names the lease; a statement without a row in its result means that the lease is
//! lost.

use std::time::Duration;

use sqlx::{PgConnection, PgExecutor};

use super::{
    job::{Backoff, Until},
    run::Run,
};

/// The end of a run as it is written.
#[derive(Debug)]
pub(super) enum Ending {
    /// The work is done.
    Done,
    /// The handler wrote the end itself.
    Committed { lane_owed: bool },
    /// An attempt failed, and attempts are left.
    Retry { cause: &'static str, error: String, backoff: Backoff, asked_secs: Option<f64> },
    /// The job runs again later, at the handler's wish.
    Snooze { until: Until, reason: String },
    /// The database was unavailable during the run. Written when it is back; uses up no attempt.
    DatabaseLost { error: String, wait: Duration },
    /// The job waits for the decision of a person.
    Held { reason: String },
    /// The job waits for a signal of the application; its lane goes on without it.
    Aside { reason: String },
    /// The job failed for good.
    Fail { death: Death, hold_lane: bool, error: String },
    /// The run stopped because the job was cancelled.
    Cancelled { error: Option<String> },
    /// The run stopped because the process shuts down.
    GivenBack,
    /// The job belongs to another worker. Nothing is written.
    LeaseLost,
}

/// The reason why a job fails for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    Failed,
    Exhausted,
    BadPayload,
}

/// The result of writing an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// False if the lease was lost and nothing was written.
    pub(super) held: bool,
    /// True if the next job of the lane could not be made ready in the same statement.
    pub(super) lane_owed: bool,
}

/// All values of [`Ending::reason`].
pub(super) const REASONS: [&str; 11] = [
    "ok",
    "error",
    "panic",
    "deadline",
    "rate_limited",
    "database_lost",
    "held",
    "bad_payload",
    "cancelled",
    "drain",
    "lease_lost",
];

impl Ending {
    /// Returns the `reason` label of the metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Done | Self::Committed { .. } => "ok",
            Self::Retry { cause, .. } => cause,
            Self::Snooze { .. } => "rate_limited",
            Self::DatabaseLost { .. } => "database_lost",
            Self::Held { .. } | Self::Aside { .. } => "held",
            Self::Fail { death: Death::BadPayload, .. } => "bad_payload",
            Self::Fail { .. } => "error",
            Self::Cancelled { .. } => "cancelled",
            Self::GivenBack => "drain",
            Self::LeaseLost => "lease_lost",
        }
    }
}

impl Death {
    fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::BadPayload => "bad_payload",
        }
    }
}

/// Ends runs as done. Returns the ids of those whose lease was valid, each with true if its lane is owed a promotion.
pub(super) async fn finish_many(
    executor: impl PgExecutor<'_>,
    job_ids: &[i64],
    leases: &[i64],
) -> Result<Vec<(i64, bool)>, sqlx::Error> {
    sqlx::query_file!("src/sql/end_done.sql", job_ids, leases)
        .map(|row| (row.id, row.lane_owed))
        .fetch_all(executor)
        .await
}

/// Writes one end.
pub(super) async fn write(
    conn: &mut PgConnection,
    run: &Run,
    ending: &Ending,
) -> Result<Written, sqlx::Error> {
    let (job_id, lease) = (run.job_id(), run.lease());
    let lane_owed = match ending {
        Ending::Done => {
            finish_many(conn, &[job_id], &[lease]).await?.first().map(|(_, owed)| *owed)
        }
        Ending::Committed { .. } | Ending::LeaseLost => Some(false),
        Ending::Retry { error, backoff, asked_secs, .. } => {
            let (base, cap) = (backoff.first.as_secs_f64(), backoff.cap.as_secs_f64());
            sqlx::query_file!(
                "src/sql/end_retry.sql",
                job_id,
                lease,
                text(error),
                base,
                cap,
                *asked_secs
            )
            .map(|_| false)
            .fetch_optional(conn)
            .await?
        }
        Ending::Snooze { until, reason } => put_off(conn, run, *until, reason).await?,
        Ending::DatabaseLost { error, wait } => {
            put_off(conn, run, Until::After(*wait), error).await?
        }
        Ending::Held { reason } => {
            sqlx::query_file!("src/sql/end_hold.sql", job_id, lease, text(reason))
                .map(|_| false)
                .fetch_optional(conn)
                .await?
        }
        Ending::Aside { reason } => {
            let back = give_back(&mut *conn, &[job_id], &[lease], &text(reason)).await?;
            put_aside(conn, job_id).await?;
            back.first().copied()
        }
        Ending::Fail { death, hold_lane, error } => {
            sqlx::query_file!(
                "src/sql/end_fail.sql",
                job_id,
                lease,
                death.as_str(),
                text(error),
                *hold_lane
            )
            .map(|row| row.lane_owed)
            .fetch_optional(conn)
            .await?
        }
        Ending::Cancelled { error } => {
            sqlx::query_file!(
                "src/sql/end_cancelled.sql",
                job_id,
                lease,
                error.as_deref().map(text)
            )
            .map(|row| row.lane_owed)
            .fetch_optional(conn)
            .await?
        }
        Ending::GivenBack => give_back(conn, &[job_id], &[lease], "the worker is shutting down")
            .await?
            .first()
            .copied(),
    };
    Ok(Written { held: lane_owed.is_some(), lane_owed: lane_owed.unwrap_or(false) })
}

/// Snoozes a running job without using up an attempt. Returns false for "no promotion owed": the job keeps its place in
/// the lane.
async fn put_off(
    executor: impl PgExecutor<'_>,
    run: &Run,
    until: Until,
    reason: &str,
) -> Result<Option<bool>, sqlx::Error> {
    let (at, after_secs) = match until {
        Until::At(moment) => (Some(moment), None),
        Until::After(wait) => (None, Some(wait.as_secs_f64())),
    };
    let (job_id, lease) = (run.job_id(), run.lease());
    sqlx::query_file!("src/sql/end_snooze.sql", job_id, lease, at, after_secs, text(reason))
        .map(|_| false)
        .fetch_optional(executor)
        .await
}

/// Makes a job that was just given back wait for a signal. A job that a person wants held keeps its place and is held
/// there.
async fn put_aside(executor: impl PgExecutor<'_>, job_id: i64) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("select dalsegno.put_aside($1)", &[job_id])
        .fetch_one(executor)
        .await
        .map(drop)
}

/// Gives running jobs back without using up an attempt. Returns one entry per job whose lease was valid: true if its
/// lane has to be swept.
pub(super) async fn give_back(
    executor: impl PgExecutor<'_>,
    job_ids: &[i64],
    leases: &[i64],
    reason: &str,
) -> Result<Vec<bool>, sqlx::Error> {
    sqlx::query_file!("src/sql/give_back.sql", job_ids, leases, reason)
        .map(|row| row.in_lane)
        .fetch_all(executor)
        .await
}

/// Makes the next job ready in lanes that are owed a promotion. Returns the number of jobs made ready.
pub(super) async fn sweep_lanes(
    executor: impl PgExecutor<'_>,
    max_lanes: i32,
) -> Result<i32, sqlx::Error> {
    sqlx::query_file_scalar!("src/sql/lane_sweep.sql", max_lanes).fetch_one(executor).await
}

/// Cuts an error text to what is stored: Postgres refuses NUL characters, and a few pages are enough for a reader.
fn text(error: &str) -> String {
    const LIMIT: usize = 8_000;
    error.chars().filter(|c| *c != '\0').take(LIMIT).collect()
}
