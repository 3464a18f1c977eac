//! The record of cleanups. The first attempt of a job creates a row, and later attempts continue it. Every write checks the lease, so that
//! a run that was declared lost changes nothing any more.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};

use super::{Batch, KeepReason, KeptCounts, RemovedCount};
use crate::domain::StatementError;

/// Age of the last success that is reported: a day, and time for a long run and a late start.
const OVERDUE: TimeDelta = TimeDelta::hours(26);

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CleanupRun {
    pub id: i64,
    /// `sessions`, or `folders` of one host.
    pub kind: String,
    pub job_id: Option<i64>,
    /// The caller who asked for it: `cli:ann@vm`, `key:ci:3f0c2a9be1d4`, or `schedule` if its schedule ran it. Null: unknown, as in some runs
    /// of older versions, or a removal of folders.
    #[serde(default)]
    pub requested_by: Option<String>,
    pub host: String,
    pub started_at: DateTime<Utc>,
    /// Null while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    pub duration_secs: Option<f64>,
    pub outcome: Option<String>,
    pub sessions: i64,
    pub messages: i64,
    pub bytes: i64,
    pub folders: i64,
    /// Removed events of the feed.
    pub events: i64,
    /// Removed items of memories, which were revoked or had expired long enough ago.
    pub memory_items: i64,
    /// Expired sessions whose summary was kept for their successors.
    pub summaries_kept: i64,
    /// Removed summaries, which no task had used in time.
    pub summaries_removed: i64,
    /// Archived posts of boards.
    pub posts_archived: i64,
    /// Removed sessions by provider and reason.
    pub removed: Value,
    /// Due sessions that were kept, by reason.
    pub kept: Value,
}

/// The row of a run, held by the run that has the lease.
#[derive(Debug, Clone)]
pub struct RunRow {
    id: i64,
    lease: i64,
    pub progress: Progress,
}

/// Counts of the run so far, including earlier attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    pub sessions: i64,
    pub messages: i64,
    pub bytes: i64,
    pub events: i64,
    pub memory_items: i64,
    pub summaries_kept: i64,
    pub summaries_removed: i64,
    pub posts_archived: i64,
    pub removed: Vec<RemovedCount>,
    /// Of this attempt only, because each attempt checks these sessions again.
    pub kept: KeptCounts,
}

impl Progress {
    pub fn add(&mut self, batch: &Batch) {
        self.sessions += batch.sessions;
        self.messages += batch.messages;
        self.bytes += batch.bytes;
        self.summaries_kept += batch.summaries_kept;
        self.count_kept(&batch.kept);
        for more in &batch.removed {
            let same = |it: &&mut RemovedCount| {
                (&it.provider, it.because) == (&more.provider, more.because)
            };
            match self.removed.iter_mut().find(same) {
                Some(it) => it.sessions += more.sessions,
                None => self.removed.push(more.clone()),
            }
        }
    }

    pub fn count_kept(&mut self, kept: &[KeepReason]) {
        for kept in kept {
            *self.kept.entry(*kept).or_default() += 1;
        }
    }
}

/// Creates the row of a job's run, or takes over the row of the attempt before, even if that attempt had ended the row. `None`: a later run
/// owns the row.
///
/// Open rows of earlier jobs belong to runs that died for good, because cleanups run one at a time. They are ended as failed.
pub async fn begin(
    conn: &mut PgConnection,
    job_id: i64,
    lease: i64,
    requested_by: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<RunRow>, StatementError> {
    sqlx::query!(
        "update dalsegno.cleanup_runs set ended_at = $2, outcome = 'failed'
          where ended_at is null and kind = 'sessions' and job_id < $1",
        job_id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("close the records of lost cleanups"))?;
    let row = sqlx::query!(
        r#"insert into dalsegno.cleanup_runs as r (job_id, lease, started_at, kind, requested_by) values ($1, $2, $3, 'sessions', $4)
           on conflict (job_id) where job_id is not null do update
              set lease = excluded.lease, ended_at = null, outcome = null where r.lease <= excluded.lease
           returning id, sessions, messages, bytes, events, memory_items, summaries_kept, summaries_removed,
                     posts_archived, removed as "removed: Json<Vec<RemovedCount>>""#,
        job_id,
        lease,
        now,
        requested_by,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("record a cleanup"))?;
    Ok(row.map(|row| RunRow {
        id: row.id,
        lease,
        progress: Progress {
            sessions: row.sessions,
            messages: row.messages,
            bytes: row.bytes,
            events: row.events,
            memory_items: row.memory_items,
            summaries_kept: row.summaries_kept,
            summaries_removed: row.summaries_removed,
            posts_archived: row.posts_archived,
            removed: row.removed.0,
            kept: KeptCounts::new(),
        },
    }))
}

/// Stores the progress, in the transaction of a batch. False: a later run owns the row, and the batch has to be rolled back.
pub async fn advance(
    executor: impl PgExecutor<'_>,
    recorded: &RunRow,
) -> Result<bool, StatementError> {
    let RunRow { id, lease, progress } = recorded;
    sqlx::query!(
        "update dalsegno.cleanup_runs set sessions = $3, messages = $4, bytes = $5, removed = $6, kept = $7, events = $8, memory_items = $9,
                summaries_kept = $10, summaries_removed = $11, posts_archived = $12
          where id = $1 and lease = $2 and ended_at is null",
        id,
        lease,
        progress.sessions,
        progress.messages,
        progress.bytes,
        Json(&progress.removed) as _,
        Json(&progress.kept) as _,
        progress.events,
        progress.memory_items,
        progress.summaries_kept,
        progress.summaries_removed,
        progress.posts_archived,
    )
    .execute(executor)
    .await
    .map(|written| written.rows_affected() == 1)
    .map_err(StatementError::to("record the progress of a cleanup"))
}

/// Ends the row of a run that succeeded.
pub async fn finish(
    executor: impl PgExecutor<'_>,
    recorded: &RunRow,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    end(executor, recorded, "done", now).await
}

/// Ends the row of a run that a person stopped.
pub async fn cancel(
    executor: impl PgExecutor<'_>,
    recorded: &RunRow,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    end(executor, recorded, "cancelled", now).await
}

/// Records that a host has removed folders.
pub async fn record_removed_folders(
    executor: impl PgExecutor<'_>,
    host: &str,
    folders: i64,
    bytes: i64,
    started_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.cleanup_runs (started_at, ended_at, outcome, kind, host, folders, bytes)
         values ($1, $2, 'done', 'folders', $3, $4, $5)",
        started_at,
        now,
        host,
        folders,
        bytes,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("record the removal of folders"))
}

/// The newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<CleanupRun>, StatementError> {
    sqlx::query_as!(
        CleanupRun,
        r#"select id, kind, job_id, requested_by, host, started_at, ended_at,
                  extract(epoch from ended_at - started_at)::float8 as duration_secs, outcome, sessions, messages, bytes, folders,
                  events, memory_items, summaries_kept, summaries_removed, posts_archived, removed, kept
             from dalsegno.cleanup_runs where id < coalesce($1, 9223372036854775807) order by id desc limit $2"#,
        before,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the cleanups"))
}

/// Returns the end of the last successful cleanup of sessions.
pub async fn last_success(
    executor: impl PgExecutor<'_>,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    sqlx::query_scalar!(
        "select ended_at from dalsegno.cleanup_runs where kind = 'sessions' and outcome = 'done' order by id desc limit 1",
    )
    .fetch_optional(executor)
    .await
    .map(Option::flatten)
    .map_err(StatementError::to("find the last cleanup"))
}

/// Returns true if the nightly cleanup should have succeeded since. Where it has never succeeded, its age counts from its schedule.
pub fn is_overdue(
    last: Option<DateTime<Utc>>,
    scheduled_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> bool {
    now - last.unwrap_or(scheduled_at) > OVERDUE
}

async fn end(
    executor: impl PgExecutor<'_>,
    recorded: &RunRow,
    outcome: &str,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    sqlx::query!(
        "update dalsegno.cleanup_runs set ended_at = $4, outcome = $3, kept = $5
          where id = $1 and lease = $2 and ended_at is null",
        recorded.id,
        recorded.lease,
        outcome,
        now,
        Json(&recorded.progress.kept) as _,
    )
    .execute(executor)
    .await
    .map(|written| written.rows_affected() == 1)
    .map_err(StatementError::to("record the end of a cleanup"))
}
