//! The statements that end a run. Each names the lease; a statement without a row in its result means that the lease is
//! lost.

use std::time::Duration;

use sqlx::{PgConnection, PgExecutor};

use super::{
    job::{Backoff, HoldUntil, WaitCause},
    run::Run,
};

/// The end of a run as it is written.
#[derive(Debug)]
pub(super) enum EndKind {
    /// The work is done.
    Done,
    /// The handler wrote the end itself.
    Committed { lane_owed: bool, outcomes: Outcomes },
    /// An attempt failed, and attempts are left.
    Retry { cause: &'static str, error: String, backoff: Backoff, asked_secs: Option<f64> },
    /// The job runs again later, at the handler's wish.
    Snooze { until: HoldUntil, cause: Option<WaitCause>, reason: String },
    /// The database was unavailable during the run. Written when it is back; uses up no attempt.
    DatabaseLost { error: String, wait: Duration },
    /// The job waits for the decision of a person.
    Held { reason: String },
    /// The job waits for a signal of the application; its lane goes on without it.
    AwaitSignal { reason: String },
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

/// An end as the metrics count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcomes {
    /// The outcome of the attempt, one of [`ATTEMPT_OUTCOMES`].
    pub(super) attempt: &'static str,
    /// The outcome of the job, one of [`JOB_OUTCOMES`]; `None` if the job goes on.
    pub(super) job: Option<&'static str>,
}

/// The result of writing an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteResult {
    /// False if the lease was lost and nothing was written.
    pub(super) held: bool,
    /// True if the failed job is held at the head of its lane instead of being a dead letter.
    pub(super) holds_lane: bool,
    /// True if the next job of the lane could not be made ready in the same statement.
    pub(super) lane_owed: bool,
}

pub(super) const DONE: &str = "done";
pub(super) const LEASE_LOST: &str = "lease_lost";
/// The outcome of a job whose workers were lost three times in a row.
pub(super) const WORKER_LOST: &str = "worker_lost";
const CANCELLED: &str = "cancelled";

/// Outcomes of attempts.
pub(super) const ATTEMPT_OUTCOMES: [&str; 12] = [
    DONE,
    "error",
    "panic",
    "deadline",
    "bad_payload",
    "snoozed",
    "database_lost",
    "held",
    "put_aside",
    CANCELLED,
    "given_back",
    LEASE_LOST,
];

/// Outcomes of jobs. Those of dead letters are the values of `dead_jobs.reason`.
pub(super) const JOB_OUTCOMES: [&str; 6] = [
    DONE,
    Death::Failed.as_str(),
    Death::Exhausted.as_str(),
    Death::BadPayload.as_str(),
    WORKER_LOST,
    CANCELLED,
];

impl EndKind {
    /// Returns the outcomes of an end that was written. `holds_lane` is that of [`WriteResult`].
    pub(super) fn outcomes(&self, holds_lane: bool) -> Outcomes {
        let (attempt, job) = match self {
            Self::Committed { outcomes, .. } => return *outcomes,
            Self::Done => (DONE, Some(DONE)),
            Self::Retry { cause, .. } => (*cause, None),
            Self::Snooze { .. } => ("snoozed", None),
            Self::DatabaseLost { .. } => ("database_lost", None),
            Self::Held { .. } => ("held", None),
            Self::AwaitSignal { .. } => ("put_aside", None),
            Self::Fail { death, .. } => {
                let attempt = if *death == Death::BadPayload { death.as_str() } else { "error" };
                (attempt, Some(death.as_str()).filter(|_| !holds_lane))
            }
            Self::Cancelled { .. } => (CANCELLED, Some(CANCELLED)),
            Self::GivenBack => ("given_back", None),
            Self::LeaseLost => (LEASE_LOST, None),
        };
        Outcomes { attempt, job }
    }
}

impl Death {
    const fn as_str(self) -> &'static str {
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
    ending: &EndKind,
) -> Result<WriteResult, sqlx::Error> {
    let (job_id, lease) = (run.job_id(), run.lease());
    let mut holds_lane = false;
    let lane_owed = match ending {
        EndKind::Done => {
            finish_many(conn, &[job_id], &[lease]).await?.first().map(|(_, owed)| *owed)
        }
        EndKind::Committed { .. } | EndKind::LeaseLost => Some(false),
        EndKind::Retry { error, backoff, asked_secs, .. } => {
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
        EndKind::Snooze { until, cause, reason } => {
            snooze(conn, run, *until, *cause, reason).await?
        }
        EndKind::DatabaseLost { error, wait } => {
            snooze(conn, run, HoldUntil::After(*wait), None, error).await?
        }
        EndKind::Held { reason } => {
            sqlx::query_file!("src/sql/end_hold.sql", job_id, lease, text(reason))
                .map(|_| false)
                .fetch_optional(conn)
                .await?
        }
        EndKind::AwaitSignal { reason } => {
            let back = give_back(&mut *conn, &[job_id], &[lease], &text(reason)).await?;
            wait_for_signal(conn, job_id).await?;
            back.first().copied()
        }
        EndKind::Fail { death, hold_lane, error } => sqlx::query_file!(
            "src/sql/end_fail.sql",
            job_id,
            lease,
            death.as_str(),
            text(error),
            *hold_lane
        )
        .fetch_optional(conn)
        .await?
        .map(|row| {
            holds_lane = row.state == "held";
            row.lane_owed
        }),
        EndKind::Cancelled { error } => {
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
        EndKind::GivenBack => give_back(conn, &[job_id], &[lease], "the worker is shutting down")
            .await?
            .first()
            .copied(),
    };
    let (held, lane_owed) = (lane_owed.is_some(), lane_owed.unwrap_or(false));
    Ok(WriteResult { held, holds_lane, lane_owed })
}

/// Snoozes a running job without using up an attempt. Returns false for "no promotion owed": the job keeps its place in
/// the lane.
async fn snooze(
    executor: impl PgExecutor<'_>,
    run: &Run,
    until: HoldUntil,
    cause: Option<WaitCause>,
    reason: &str,
) -> Result<Option<bool>, sqlx::Error> {
    let (at, after_secs) = match until {
        HoldUntil::At(moment) => (Some(moment), None),
        HoldUntil::After(wait) => (None, Some(wait.as_secs_f64())),
    };
    let (job_id, lease) = (run.job_id(), run.lease());
    sqlx::query_file!(
        "src/sql/end_snooze.sql",
        job_id,
        lease,
        at,
        after_secs,
        text(reason),
        cause.map(WaitCause::as_str)
    )
    .map(|_| false)
    .fetch_optional(executor)
    .await
}

/// Makes a job that was just given back wait for a signal. A job that a person wants held keeps its place and is held
/// there.
async fn wait_for_signal(executor: impl PgExecutor<'_>, job_id: i64) -> Result<(), sqlx::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(death: Death) -> EndKind {
        EndKind::Fail { death, hold_lane: false, error: String::new() }
    }

    #[test]
    fn each_end_has_its_outcomes() {
        let (until, reason) = (HoldUntil::After(Duration::ZERO), String::new);
        for (ending, attempt, job) in [
            (EndKind::Done, "done", Some("done")),
            (fail(Death::Failed), "error", Some("failed")),
            (fail(Death::Exhausted), "error", Some("exhausted")),
            (fail(Death::BadPayload), "bad_payload", Some("bad_payload")),
            (EndKind::Cancelled { error: None }, "cancelled", Some("cancelled")),
            (EndKind::Snooze { until, cause: None, reason: reason() }, "snoozed", None),
            (EndKind::Held { reason: reason() }, "held", None),
            (EndKind::AwaitSignal { reason: reason() }, "put_aside", None),
            (EndKind::GivenBack, "given_back", None),
            (EndKind::LeaseLost, "lease_lost", None),
        ] {
            let outcomes = Outcomes { attempt, job };
            assert_eq!(ending.outcomes(false), outcomes);
            assert!(ATTEMPT_OUTCOMES.contains(&attempt));
            assert!(job.is_none_or(|job| JOB_OUTCOMES.contains(&job)), "{job:?}");
            // The handler has written it, and the worker counts it.
            let committed = EndKind::Committed { lane_owed: false, outcomes };
            assert_eq!(committed.outcomes(false), outcomes);
        }
    }

    #[test]
    fn a_failed_job_that_holds_its_lane_is_not_finished() {
        let outcomes = fail(Death::Exhausted).outcomes(true);
        assert_eq!(outcomes, Outcomes { attempt: "error", job: None });
    }
}
