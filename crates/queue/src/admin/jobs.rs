//! Jobs, live and dead, and their runs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::WaitReason;
use crate::{enqueue::NEVER, error::Error};

/// Selection of jobs. Unset fields match everything.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Only this queue.
    pub queue: Option<String>,
    /// Only this kind.
    pub kind: Option<String>,
    /// Only this state; `dead` lists dead letters.
    pub state: Option<String>,
    /// Only this lane.
    pub lane: Option<String>,
    /// Only this group.
    pub group_key: Option<String>,
    /// Only jobs that wait for this reason.
    pub waits_for: Option<WaitReason>,
    /// Only ids after this one: the last id of the page before.
    pub after_id: Option<i64>,
    /// Largest number of jobs; 50 if unset.
    pub limit: Option<i64>,
}

/// One line of `job ls`.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobSummary {
    /// The id.
    pub id: i64,
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// The state; `dead` for a dead letter.
    pub state: String,
    /// The lane.
    pub lane: Option<String>,
    /// The group.
    pub group_key: Option<String>,
    /// 0 is the most urgent.
    pub priority: i16,
    /// Attempts so far, with the one that runs.
    pub attempt: i16,
    /// After how many failures it is dead.
    pub max_attempts: i16,
    /// When it is due, or since when it is ready.
    pub run_at: DateTime<Utc>,
    /// When it was put on the queue.
    pub enqueued_at: DateTime<Utc>,
    /// Why it waits, in the words of the counts by reason.
    #[serde(default)]
    pub wait_reason: Option<String>,
    /// Reason of the person who held it, or the error of a dead letter.
    #[serde(default)]
    pub reason: Option<String>,
}

impl JobSummary {
    /// Returns `run_at`, or `None` while it waits for a signal: then `run_at` is only a mark.
    pub fn due_at(&self) -> Option<DateTime<Utc>> {
        Some(self.run_at).filter(|run_at| Some(*run_at) != NEVER)
    }
}

/// A job that has ended.
#[derive(Debug, Clone)]
pub struct GoneJob {
    /// The id.
    pub id: i64,
    /// True if it was cancelled and did not fail.
    pub cancelled: bool,
    /// Recorded reason, if any.
    pub error: Option<String>,
    /// True if it lost its third worker within the last minute. A worker that was only cut off from the database puts the
    /// job on the queue again when it comes back.
    pub may_return: bool,
}

/// A job with everything known about it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobDetail {
    /// The line of the list.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// Input of the job.
    pub payload: Value,
    /// Names and values beside the payload.
    pub headers: Option<Value>,
    /// Its ended attempts, the newest first.
    pub runs: Vec<RunRecord>,
    /// Its present run.
    #[serde(default)]
    pub running: Option<PresentRun>,
}

/// The present run of a job.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PresentRun {
    /// The lease that it holds.
    pub lease: i64,
    /// When it was claimed.
    pub claimed_at: DateTime<Utc>,
    /// The worker of the run.
    pub worker_id: Uuid,
    /// The host of the worker.
    pub host: Option<String>,
    /// The process of the worker.
    pub pid: Option<i32>,
    /// When its worker has to have renewed the lease.
    pub lease_until: Option<DateTime<Utc>>,
}

/// One ended attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunRecord {
    /// The lease it held.
    pub lease: i64,
    /// Its number.
    pub attempt: i16,
    /// Outcome of the run.
    pub outcome: String,
    /// The worker of the run.
    pub worker_id: Option<Uuid>,
    /// The host of the worker, as long as the worker is kept.
    #[serde(default)]
    pub host: Option<String>,
    /// The process of the worker.
    #[serde(default)]
    pub pid: Option<i32>,
    /// When it was claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Error of the run.
    pub error: Option<String>,
}

/// Effect of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobCancelled)]
pub enum CancelOutcome {
    /// It was not running and is gone.
    AtOnce,
    /// It runs; its worker was told to stop it.
    Requested,
    /// It was already a dead letter.
    AlreadyDead,
    /// It had already ended.
    AlreadyEnded,
}

/// Returns the jobs among these that have ended: neither waiting, held nor running.
pub async fn list_ended_jobs(
    executor: impl PgExecutor<'_>,
    job_ids: &[i64],
) -> Result<Vec<GoneJob>, Error> {
    sqlx::query_file_as!(GoneJob, "src/sql/gone_jobs.sql", job_ids)
        .fetch_all(executor)
        .await
        .map_err(Error::of("list ended jobs"))
}

/// Lists jobs in the order of their ids.
pub async fn list_jobs(
    executor: impl PgExecutor<'_>,
    filter: &JobFilter,
) -> Result<Vec<JobSummary>, Error> {
    sqlx::query_file_as!(
        JobSummary,
        "src/sql/list_jobs.sql",
        filter.queue,
        filter.kind,
        filter.state,
        filter.lane,
        filter.after_id.unwrap_or(0),
        filter.limit.unwrap_or(50),
        filter.group_key,
        filter.waits_for.map(WaitReason::as_str),
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list jobs"))
}

/// Loads a job with its payload and its runs.
pub async fn find_job(conn: &mut PgConnection, job_id: i64) -> Result<JobDetail, Error> {
    let found = sqlx::query_file!("src/sql/find_job.sql", job_id)
        .fetch_optional(&mut *conn)
        .await
        .map_err(Error::of("find a job"))?;
    let runs = runs_of(&mut *conn, job_id).await?;
    let Some(row) = found else {
        return Err(Error::NotFound {
            message: format!("job {job_id} is neither on the queue nor a dead letter"),
            hint: match runs.first() {
                Some(last) => format!(
                    "It ended as {}; `dalsegno job explain {job_id}` says more",
                    last.outcome
                ),
                None => "Check the number: its run was removed after queue.keep.runs_days, or it never existed".to_owned(),
            },
        });
    };
    Ok(JobDetail {
        summary: JobSummary {
            id: job_id,
            queue: row.queue,
            kind: row.kind,
            state: row.state,
            lane: row.lane,
            group_key: row.group_key,
            priority: row.priority,
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            run_at: row.run_at,
            enqueued_at: row.enqueued_at,
            wait_reason: row.wait_reason,
            reason: row.reason,
        },
        running: row.lease.zip(row.claimed_at).zip(row.worker_id).map(
            |((lease, claimed_at), worker_id)| PresentRun {
                lease,
                claimed_at,
                worker_id,
                host: row.host,
                pid: row.pid,
                lease_until: row.lease_until,
            },
        ),
        payload: row.payload,
        headers: row.headers,
        runs,
    })
}

/// Loads the ended attempts of a job, latest first.
pub async fn runs_of(executor: impl PgExecutor<'_>, job_id: i64) -> Result<Vec<RunRecord>, Error> {
    sqlx::query_as!(
        RunRecord,
        r#"SELECT r.lease, r.attempt, r.outcome, r.worker_id, w.host AS "host?", w.pid AS "pid?", r.started_at, r.ended_at, r.error
             FROM dalsegno.runs AS r LEFT JOIN dalsegno.workers AS w ON w.id = r.worker_id
            WHERE r.job_id = $1 ORDER BY r.ended_at DESC LIMIT 100"#,
        job_id
    )
    .fetch_all(executor)
    .await
    .map_err(Error::of("list the runs of a job"))
}

/// Cancels a job: at once if it does not run, through its worker if it does.
pub async fn cancel_job(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    reason: &str,
) -> Result<CancelOutcome, Error> {
    let found =
        sqlx::query_scalar!(r#"SELECT dalsegno.cancel($1, $2) AS "found!""#, job_id, reason)
            .fetch_one(executor)
            .await
            .map_err(Error::of("cancel a job"))?;
    match found.as_str() {
        "cancelled" => Ok(CancelOutcome::AtOnce),
        "requested" => Ok(CancelOutcome::Requested),
        "dead" => Ok(CancelOutcome::AlreadyDead),
        "ended" => Ok(CancelOutcome::AlreadyEnded),
        _ => Err(Error::NotFound {
            message: format!("there is no job {job_id}"),
            hint: "`dalsegno job ls` lists the jobs".to_owned(),
        }),
    }
}

/// Cancels those of these jobs that neither run nor are locked, in two statements for any number of jobs. Returns their ids.
pub async fn cancel_jobs(
    conn: &mut PgConnection,
    job_ids: &[i64],
    reason: &str,
) -> Result<Vec<i64>, Error> {
    let gone = sqlx::query_file!("src/sql/cancel_many.sql", job_ids, reason)
        .fetch_all(&mut *conn)
        .await
        .map_err(Error::of("cancel jobs"))?;
    let mut lanes: Vec<i64> = gone.iter().filter_map(|row| row.lane_id).collect();
    lanes.sort_unstable();
    lanes.dedup();
    if !lanes.is_empty() {
        sqlx::query!("SELECT dalsegno.promote_lanes($1)", &lanes)
            .fetch_one(conn)
            .await
            .map_err(Error::of("promote the lanes of cancelled jobs"))?;
    }
    Ok(gone.into_iter().map(|row| row.id).collect())
}

/// Changes the priority of a job that does not run. Returns the priority before; `None` if the job runs or has ended.
pub async fn change_priority(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    priority: i16,
) -> Result<Option<i16>, Error> {
    sqlx::query_file_scalar!("src/sql/change_priority.sql", job_id, priority)
        .fetch_optional(executor)
        .await
        .map_err(Error::of("change the priority of a job"))
}

/// Runs a dead, held or waiting job again. Returns its new state.
pub async fn retry_job(executor: impl PgExecutor<'_>, job_id: i64) -> Result<String, Error> {
    sqlx::query_scalar!(r#"SELECT dalsegno.retry($1) AS "state!""#, job_id)
        .fetch_one(executor)
        .await
        .map_err(Error::of("retry a job"))
}

/// Makes snoozed jobs of a kind due at once, at most 10000. Returns their number.
pub async fn wake_snoozed(executor: impl PgExecutor<'_>, kind: &str) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"SELECT count(dalsegno.retry(j.id)) AS "n!"
             FROM (SELECT id FROM dalsegno.jobs WHERE kind = $1 AND state = 'scheduled' AND wait_reason = 'snooze'
                     AND run_at < dalsegno.never() ORDER BY id LIMIT 10000) AS j"#,
        kind,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("wake snoozed jobs"))
}

/// Keeps a job from running until [`release_job`]. Returns the state it is in now.
pub async fn hold_job(
    executor: impl PgExecutor<'_>,
    job_id: i64,
    reason: &str,
) -> Result<String, Error> {
    sqlx::query_scalar!(r#"SELECT dalsegno.hold_job($1, $2) AS "state!""#, job_id, reason)
        .fetch_one(executor)
        .await
        .map_err(Error::of("hold a job"))
}

/// Lets a held job go on. Returns its new state.
pub async fn release_job(executor: impl PgExecutor<'_>, job_id: i64) -> Result<String, Error> {
    sqlx::query_scalar!(r#"SELECT dalsegno.release_job($1) AS "state!""#, job_id)
        .fetch_one(executor)
        .await
        .map_err(Error::of("release a job"))
}

/// Releases those of these jobs that a person held for exactly this reason. Returns their number.
pub async fn release_held(
    executor: impl PgExecutor<'_>,
    job_ids: &[i64],
    reason: &str,
) -> Result<i64, Error> {
    sqlx::query_scalar!(
        r#"SELECT count(dalsegno.release_job(j.id)) AS "n!"
             FROM (SELECT id FROM dalsegno.jobs
                    WHERE id = ANY ($1) AND state = 'held' AND hold_by = 'person' AND hold_reason = $2 ORDER BY id) AS j"#,
        job_ids,
        reason,
    )
    .fetch_one(executor)
    .await
    .map_err(Error::of("release jobs"))
}
