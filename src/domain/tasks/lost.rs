//! Lost tasks: open tasks whose job has ended. The job crashed three workers, had an unreadable payload, or was cancelled without its
//! task.
//!
//! Races:
//! - A turn ends its task during the check. Tasks are read before jobs, so such a task looks lost; ending it then fails because it has
//!   ended.
//! - The task is put on the queue again meanwhile. Ending it names the lost job, and finds another one.
//! - The third lost worker was only cut off from the database. It puts the job on the queue again when it comes back, so the task waits a minute
//!   for it.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};

use super::{End, Error, by_job, end_without_turn};
use crate::{
    domain::{StatementError, feed, text, turns},
    queue::admin::{self, GoneJob},
};

/// Lists the jobs of open tasks in the order of their ids, after `after_job_id`.
pub async fn live_jobs(
    executor: impl PgExecutor<'_>,
    after_job_id: i64,
    limit: i64,
) -> Result<Vec<i64>, StatementError> {
    sqlx::query_scalar!(
        "select job_id from dalsegno.tasks where ended_at is null and job_id > $1 order by job_id limit $2",
        after_job_id,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list tasks that have not ended"))
}

/// Returns those of these jobs that will not end their tasks any more.
pub async fn list_ended_jobs(
    executor: impl PgExecutor<'_>,
    job_ids: &[i64],
) -> Result<Vec<GoneJob>, Error> {
    let ended = admin::list_ended_jobs(executor, job_ids).await?;
    Ok(ended.into_iter().filter(|job| !job.may_return).collect())
}

/// Ends the task of a lost job, and the turn that its last run may have left. The caller commits, or rolls back if the task has ended
/// meanwhile.
pub async fn end_lost(
    conn: &mut PgConnection,
    job: &GoneJob,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let task = by_job(&mut *conn, job.id).await?;
    turns::clean_up(&mut *conn, task.without_turn(), now).await?;
    let unknown = || "its job ended without an error".to_owned();
    let why = text::make_storable(job.error.clone().unwrap_or_else(unknown));
    let (state, kind) = match job.cancelled {
        true => (End::Cancelled, feed::Kind::TaskCancelled),
        false => (End::Failed { error: &why, refusal: None }, feed::Kind::TaskFailed),
    };
    end_without_turn(&mut *conn, &task, state, now).await?;
    let event = feed::New {
        campaign_id: Some(task.campaign_id),
        task_id: Some(task.id),
        session_id: task.session_id,
        kind,
        data: json!({ "because": why }),
    };
    Ok(feed::append(conn, &[event], now).await?)
}
