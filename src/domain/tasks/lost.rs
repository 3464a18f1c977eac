//! Tasks whose job has ended without them: it took three workers down, its payload could not be read, somebody
//! cancelled the job and not the task.
//!
//! Races: a turn ends its task while it is looked at. Tasks are read before jobs, so a task that ended in between looks
//! lost; ending it then finds that it has ended. Somebody puts it on the queue again meanwhile: ending it names the job
//! that was lost, and finds another one.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};

use super::{End, Error, by_job, end_without_turn};
use crate::{
    domain::{Failed, feed, text, turns},
    queue::admin::{self, GoneJob},
};

/// The jobs of a stretch of tasks that have not ended, by id.
pub async fn live_jobs(
    executor: impl PgExecutor<'_>,
    after_job_id: i64,
    limit: i64,
) -> Result<Vec<i64>, Failed> {
    sqlx::query_scalar!(
        "select job_id from dalsegno.tasks where ended_at is null and job_id > $1 order by job_id limit $2",
        after_job_id,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look for tasks that have not ended"))
}

/// Those of these jobs that will not end their tasks any more.
pub async fn gone(executor: impl PgExecutor<'_>, job_ids: &[i64]) -> Result<Vec<GoneJob>, Error> {
    Ok(admin::gone_jobs(executor, job_ids).await?)
}

/// Ends the task of a job that is over, and the turn that its last run may have left. The caller commits, or rolls back
/// where the task has ended meanwhile.
pub async fn end_lost(
    conn: &mut PgConnection,
    job: &GoneJob,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let task = by_job(&mut *conn, job.id).await?;
    turns::clear_up(&mut *conn, task.without_turn(), now).await?;
    let unknown = || "its job ended without a word".to_owned();
    let why = text::storable(job.error.clone().unwrap_or_else(unknown));
    let (state, kind) = match job.cancelled {
        true => (End::Cancelled, feed::Kind::TaskCancelled),
        false => (End::Failed { error: &why }, feed::Kind::TaskFailed),
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
