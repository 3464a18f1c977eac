//! Dead letters of tasks, and retrying a task by the id of its job.
//!
//! The queue keeps a dead letter of each job that has failed permanently, and knows nothing of tasks. A failed task has at most one: that
//! of its last job. Retrying or cancelling a task removes its letter, because retrying the letter would have no effect.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, State, Task, by_job, end_lost, get, retry};
use crate::{
    domain::StatementError,
    queue::{self, Job as _, admin},
};

/// Result of retrying a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RetriedJob {
    /// The job that was named.
    pub id: i64,
    /// State of the job that runs now. `removed`: the task has moved on, nothing runs, and the dead letter is deleted.
    pub state: String,
    /// The task that the job runs or ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Uuid>,
    /// State of that task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_state: Option<State>,
    /// The job that runs the task now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<i64>,
}

/// The retry of a task under a new job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRetry {
    pub task_id: Uuid,
    /// The job that runs or ran the task last.
    pub job_id: i64,
}

/// Finds the retried task whose first job this was. A task remembers its first job and its last one, so the jobs between them are not
/// found.
pub async fn find_retry(
    executor: impl PgExecutor<'_>,
    first_job_id: i64,
) -> Result<Option<TaskRetry>, StatementError> {
    sqlx::query_as!(
        TaskRetry,
        "select id as task_id, job_id from dalsegno.tasks where first_job_id = $1",
        first_job_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the retried task of a job"))
}

/// Retries a job. If its task has failed or was cancelled, retries the task. A waiting job runs at once.
pub async fn retry_job(
    conn: &mut PgConnection,
    job_id: i64,
    now: DateTime<Utc>,
) -> Result<RetriedJob, Error> {
    let Some(task) = task_of(&mut *conn, job_id).await? else {
        let state = admin::retry_job(&mut *conn, job_id).await?;
        return Ok(RetriedJob { id: job_id, state, task_id: None, task_state: None, job_id: None });
    };
    if task.ended_at.is_none() && task.job_id == job_id {
        let gone = admin::list_ended_jobs(&mut *conn, &[job_id]).await?;
        let Some(gone) = gone.first() else {
            let state = admin::retry_job(&mut *conn, job_id).await?;
            forget_start(&mut *conn, &task, now).await?;
            return Ok(RetriedJob::of(job_id, state, &task));
        };
        // The sweep has not noticed yet that the task has lost its job.
        end_lost(&mut *conn, gone, now).await?;
        return retry_task(conn, job_id, task.id, now).await;
    }
    match task.state {
        State::Failed | State::Cancelled => retry_task(conn, job_id, task.id, now).await,
        State::Queued | State::Running | State::Done if task.job_id != job_id => {
            queue::forget_dead(conn, &[job_id]).await?;
            Ok(RetriedJob::of(job_id, "removed".to_owned(), &task))
        }
        state => Err(Error::Ended { id: task.id, state }),
    }
}

/// Removes the earliest start of a task that was told to run before it. A later retry does not wait for it either. The time that the answer
/// may take begins now, also for a task that was told to run before the end of others.
async fn forget_start(
    executor: impl PgExecutor<'_>,
    task: &Task,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.tasks as t set run_at = case when t.within_secs is null then null else $3::timestamptz end
          where t.id = $1 and t.job_id = $2
            and (t.run_at > $3
                 or t.within_secs is not null and t.started_at is null
                    and exists (select from dalsegno.task_waits as w where w.task_id = t.id))",
        task.id,
        task.job_id,
        now,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the earliest start of a task"))
}

async fn retry_task(
    conn: &mut PgConnection,
    job_id: i64,
    task_id: Uuid,
    now: DateTime<Utc>,
) -> Result<RetriedJob, Error> {
    // An older version left letters that do not belong to the task's last job.
    queue::forget_dead(&mut *conn, &[job_id]).await?;
    let task = retry(&mut *conn, task_id, now).await?;
    let job = admin::find_job(conn, task.job_id).await?;
    Ok(RetriedJob::of(job_id, job.summary.state, &task))
}

/// Finds the task of a job: by its row, or by the dead letter if the task has another job by now.
async fn task_of(conn: &mut PgConnection, job_id: i64) -> Result<Option<Task>, Error> {
    match by_job(&mut *conn, job_id).await {
        Err(Error::NoTaskOfJob(_)) => {}
        found => return found.map(Some),
    }
    let letter = match admin::find_job(&mut *conn, job_id).await {
        Ok(job) if job.summary.state == "dead" && is_turn(&job.summary.kind) => job,
        Ok(_) | Err(queue::Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let named = letter.headers.as_ref().and_then(|headers| headers["task"].as_str());
    match named.and_then(|id| id.parse().ok()) {
        Some(id) => get(conn, id).await.map(Some),
        None => Ok(None),
    }
}

fn is_turn(kind: &str) -> bool {
    kind == super::RunTurn::KIND || kind == super::RunJoinedTurn::KIND
}

/// Removes the dead letters of tasks that others replace.
pub async fn forget_dead_letters(conn: &mut PgConnection, ids: &[Uuid]) -> Result<(), Error> {
    let jobs = sqlx::query_scalar!(
        "select job_id from dalsegno.tasks where id = any ($1) and state = 'failed'",
        ids,
    );
    let job_ids = jobs
        .fetch_all(&mut *conn)
        .await
        .map_err(StatementError::to("list the jobs of failed tasks"))?;
    queue::forget_dead(conn, &job_ids).await?;
    Ok(())
}

/// Removes the rest of a task's last job before it gets another: its dead letter, or the failed job that holds its lane.
pub(super) async fn discard_last_job(conn: &mut PgConnection, job_id: i64) -> Result<(), Error> {
    if queue::forget_dead(&mut *conn, &[job_id]).await? > 0 {
        return Ok(());
    }
    match admin::cancel_job(conn, job_id, "its task is retried").await {
        Ok(_) | Err(queue::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl RetriedJob {
    fn of(id: i64, state: String, task: &Task) -> Self {
        Self {
            id,
            state,
            task_id: Some(task.id),
            task_state: Some(task.state),
            job_id: Some(task.job_id),
        }
    }

    /// Returns true if nothing runs, because the task has moved on.
    pub fn is_removed(&self) -> bool {
        self.state == "removed"
    }
}
