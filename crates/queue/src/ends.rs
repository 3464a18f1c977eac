//! The statements that end a run. Each names the lease; no row means that the lease is lost.

use std::time::Duration;

use sqlx::{PgConnection, PgExecutor};

use super::{
    job::{Backoff, Until},
    run::Run,
};

/// What is written at the end of a run.
#[derive(Debug)]
pub(super) enum Ending {
    /// The work is done.
    Done,
    /// The handler wrote the end itself.
    Committed { lane_owed: bool },
    /// An attempt failed and there are more.
    Retry { cause: &'static str, error: String, backoff: Backoff, asked_secs: Option<f64> },
    /// Not now.
    Snooze { until: Until, reason: String },
    /// The database was lost meanwhile. Written when it is back; no attempt is used up.
    DatabaseLost { error: String, wait: Duration },
    /// Not before a person decides.
    Held { reason: String },
    /// Not before the application gives a signal; its lane goes on without it.
    Aside { reason: String },
    /// Given up.
    Fail { death: Death, hold_lane: bool, error: String },
    /// Stopped because somebody cancelled it.
    Cancelled { error: Option<String> },
    /// Stopped because the process goes down.
    GivenBack,
    /// Somebody else's by now. Nothing is written.
    LeaseLost,
}

/// Why a job is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    Failed,
    Exhausted,
    BadPayload,
}

/// What became of an end that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    /// False: the lease was lost, and nothing was written.
    pub(super) held: bool,
    /// The next job of the lane could not be made ready in the same statement.
    pub(super) lane_owed: bool,
}

/// All that [`Ending::reason`] gives.
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
    /// The label of the metrics.
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

/// Ends runs as done. Returns the ids that really ended, each with whether its lane is owed a promotion.
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
        Ending::GivenBack => {
            give_back(conn, &[job_id], &[lease], "the worker is going down").await?.first().copied()
        }
    };
    Ok(Written { held: lane_owed.is_some(), lane_owed: lane_owed.unwrap_or(false) })
}

/// Puts a running job off unburned. Whether its lane is owed a promotion, which it never is: the job keeps its place.
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

/// Has a job wait for a signal that was just given back. One that a person wants held keeps its place, and is held there.
async fn put_aside(executor: impl PgExecutor<'_>, job_id: i64) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!("select dalsegno.put_aside($1)", &[job_id])
        .fetch_one(executor)
        .await
        .map(drop)
}

/// Gives running jobs back unburned. One entry per job that was still ours: whether its lane has to be swept.
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

/// Makes the next job of lanes ready that are owed it. Returns how many.
pub(super) async fn sweep_lanes(
    executor: impl PgExecutor<'_>,
    max_lanes: i32,
) -> Result<i32, sqlx::Error> {
    sqlx::query_file_scalar!("src/sql/lane_sweep.sql", max_lanes).fetch_one(executor).await
}

/// What of an error is kept: Postgres knows no zero byte, and nobody reads more than a few pages.
fn text(error: &str) -> String {
    const LIMIT: usize = 8_000;
    error.chars().filter(|c| *c != '\0').take(LIMIT).collect()
}
