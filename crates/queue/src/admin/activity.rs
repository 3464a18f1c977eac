//! Runs of the last hours, those that run now, and the workers that run them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::Error;

/// Runs of a queue that are read at most, so that a busy hour costs no more than a quiet one.
const MAX_RUNS: i64 = 10_000;

/// Ended runs of one step of a chart: a minute, if it shows one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunMinute {
    /// Age of the step: 0 is the one that ends now.
    pub minutes_ago: i32,
    /// Runs that were done.
    pub done: i64,
    /// Runs whose job is a dead letter.
    pub failed: i64,
}

/// Counts the runs of a queue that have ended within the last hours, in 60 steps; steps without one are missing. Returns true if older ones were
/// not read.
pub async fn runs_by_minute(
    executor: impl PgExecutor<'_>,
    queue: &str,
    hours: i32,
) -> Result<(Vec<RunMinute>, bool), Error> {
    let rows = sqlx::query_file!("src/sql/runs_by_minute.sql", queue, MAX_RUNS, hours)
        .fetch_all(executor)
        .await
        .map_err(Error::of("count the runs of the last hours"))?;
    let is_cut = rows.first().is_some_and(|row| row.n_read >= MAX_RUNS);
    let minutes = rows.into_iter().map(|row| RunMinute {
        minutes_ago: row.minutes_ago,
        done: row.done,
        failed: row.failed,
    });
    Ok((minutes.collect(), is_cut))
}

/// Lists the ids of running jobs of a queue, the oldest first.
pub async fn running_jobs(
    executor: impl PgExecutor<'_>,
    queue: &str,
    limit: i64,
) -> Result<Vec<i64>, Error> {
    sqlx::query_scalar!(
        "SELECT id FROM dalsegno.jobs WHERE state = 'running' AND queue = $1 ORDER BY id LIMIT $2",
        queue,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the running jobs"))
}

/// A worker process with what it runs and what it has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorkerLoad {
    /// The process.
    pub id: Uuid,
    /// Its host.
    pub host: String,
    /// Its process there.
    pub pid: i32,
    /// Its version.
    pub version: String,
    /// Queues that it serves.
    pub queues: Vec<String>,
    /// Jobs that it runs at once.
    pub slots: i32,
    /// True: it takes no more jobs, and ends.
    pub draining: bool,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// Its jobs are given to others after this time, unless it renews its lease.
    pub lease_until: DateTime<Utc>,
    /// When it stopped, or was declared lost.
    pub gone_at: Option<DateTime<Utc>>,
    /// `stopped` or `lost`.
    pub gone_reason: Option<String>,
}

/// A run of a job, which may not have ended yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorkerRun {
    /// The worker.
    pub worker_id: Uuid,
    /// The job.
    pub job_id: i64,
    /// Its kind.
    pub kind: String,
    /// Its lane.
    pub lane: Option<String>,
    /// When it was claimed.
    pub started_at: DateTime<Utc>,
    /// When it ended. Null while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// `done`, `retry`, `failed` and so on. Null while it runs.
    pub outcome: Option<String>,
}

/// Names the outcome of a run for people.
pub fn outcome_words(stored: &str) -> &str {
    match stored {
        "snooze" => "put off",
        "retry" => "failed, retried",
        "given_back" => "given back",
        other => other,
    }
}

/// The time of which the activity of workers is listed.
#[derive(Debug, Clone, Copy)]
pub struct ActivitySpan {
    /// Begin of the span.
    pub since: DateTime<Utc>,
    /// End of the span. `None`: it includes what runs now.
    pub until: Option<DateTime<Utc>>,
}

/// Lists workers that lived in a span, all or the one with an id; those that started last first.
pub async fn worker_loads(
    executor: impl PgExecutor<'_>,
    span: ActivitySpan,
    only: Option<Uuid>,
    limit: i64,
) -> Result<Vec<WorkerLoad>, Error> {
    sqlx::query_as!(
        WorkerLoad,
        "SELECT id, host, pid, version, queues, slots, draining, started_at, lease_until, gone_at, gone_reason FROM dalsegno.workers
          WHERE (gone_at IS NULL OR gone_at > $1) AND started_at <= coalesce($3::timestamptz, 'infinity') AND ($4::uuid IS NULL OR id = $4)
          ORDER BY gone_at IS NOT NULL, started_at DESC, id DESC LIMIT $2",
        span.since,
        limit,
        span.until,
        only,
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the workers"))
}

/// Lists running jobs of workers, and their runs that ended in a span, each at most `limit`, the newest first.
pub async fn worker_runs(
    executor: impl PgExecutor<'_>,
    workers: &[Uuid],
    span: ActivitySpan,
    limit: i64,
) -> Result<Vec<WorkerRun>, Error> {
    let ActivitySpan { since, until } = span;
    sqlx::query_file_as!(WorkerRun, "src/sql/worker_runs.sql", workers, since, limit, until)
        .fetch_all(executor)
        .await
        .map_err(Error::of("list the runs of workers"))
}
