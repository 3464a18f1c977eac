//! Cancellations of tasks, of their descendants and of jobs.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    CancelOutcome, Cancellation, CancelledJob, CancelledTask, DescendantCounts, End, Error,
    InterruptMode, by_job, cascade,
    end::{UnansweredTask, answer_posts, end_unanswered},
    get,
};
use crate::{
    domain::{
        StatementError,
        feed::{self, Kind},
        turns,
    },
    queue::{self, admin},
};

/// Cancels a task and its descendants: waiting tasks at once, running ones through their workers. For an ended task, its open descendants
/// can still be cancelled.
pub async fn cancel(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Cancellation, Error> {
    let StopResult { cancelled, below, unanswered } =
        cascade::stop(&mut *conn, id, InterruptMode::Hard, reason, now).await?;
    answer_posts(conn, unanswered, End::Cancelled, now).await?;
    Ok(Cancellation { cancel: cancelled, below })
}

/// Cancels a job. If it is the last one of a task, cancels the task and its descendants.
pub async fn cancel_job(
    conn: &mut PgConnection,
    job_id: i64,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<CancelledJob, Error> {
    let task_id = match by_job(&mut *conn, job_id).await {
        Ok(task) => Some(task.id),
        Err(Error::NoTaskOfJob(_)) => None,
        Err(error) => return Err(error),
    };
    let task = match task_id {
        Some(task_id) => match cancel(&mut *conn, task_id, reason, now).await {
            Ok(cancellation) => Some(CancelledTask { task_id, cancellation }),
            Err(Error::Ended { .. }) => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    let cancel = match task.map(|task| task.cancellation.cancel) {
        Some(CancelOutcome::AtOnce) => admin::CancelOutcome::AtOnce,
        Some(CancelOutcome::Requested | CancelOutcome::AtSafePoint) => {
            admin::CancelOutcome::Requested
        }
        // The queue knows about a dead letter, as long as it remembers the job.
        Some(CancelOutcome::HadEnded) => match admin::cancel_job(conn, job_id, reason).await {
            Err(queue::Error::NotFound { .. }) => admin::CancelOutcome::AlreadyEnded,
            found => found?,
        },
        None => admin::cancel_job(conn, job_id, reason).await?,
    };
    Ok(CancelledJob { id: job_id, cancel, task })
}

/// Cancels a task whose board is about to be erased, without answers to posts. One transaction can then cancel many tasks: an answer
/// locks the board, and a turn that ends waits for that lock while it holds its task.
pub async fn cancel_silently(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<CancelOutcome, Error> {
    cascade::stop(conn, id, InterruptMode::Hard, reason, now).await.map(|stopped| stopped.cancelled)
}

/// The result of a cancellation, and the posts to answer when all other locks are taken.
pub(super) struct StopResult {
    pub(super) cancelled: CancelOutcome,
    /// Results for the descendants.
    pub(super) below: DescendantCounts,
    pub(super) unanswered: Vec<UnansweredTask>,
}

impl StopResult {
    /// Builds a result without posts to answer.
    pub(super) fn without_answer(cancelled: CancelOutcome) -> Self {
        Self { cancelled, below: DescendantCounts::default(), unanswered: Vec::new() }
    }
}

/// Cancels one task. The job is locked first, because its row decides whether the task is running.
pub(super) async fn cancel_one(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<StopResult, Error> {
    let task = get(&mut *conn, id).await?;
    if task.ended_at.is_some() {
        return Err(Error::Ended { id, state: task.state });
    }
    // A removed or dead job will not end its task any more. The same holds for a job without a trace, because jobs are kept for a shorter
    // time than tasks.
    let runs = match admin::cancel_job(&mut *conn, task.job_id, reason).await {
        Ok(admin::CancelOutcome::AlreadyDead) => {
            queue::forget_dead(&mut *conn, &[task.job_id]).await?;
            false
        }
        Ok(cancelled) => cancelled == admin::CancelOutcome::Requested,
        Err(queue::Error::NotFound { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if runs {
        keep_reason(&mut *conn, id, reason).await?;
        return Ok(StopResult::without_answer(CancelOutcome::Requested));
    }
    // A lost worker may have left its turn running, with a part of the budget reserved. If that worker still ends the turn at this moment,
    // it locks the session before the task, and so does this.
    turns::clean_up(&mut *conn, task.without_turn(), now).await?;
    keep_reason(&mut *conn, id, reason).await?;
    let unanswered = end_unanswered(&mut *conn, &task, End::Cancelled, now).await?;
    let event = task.event(Kind::TaskCancelled, json!({ "reason": reason }));
    feed::append(conn, &[event], now).await?;
    let unanswered = unanswered.into_iter().collect();
    Ok(StopResult {
        cancelled: CancelOutcome::AtOnce,
        below: DescendantCounts::default(),
        unanswered,
    })
}

/// Stores the caller's reason for a cancellation. If a running task ends before it is stopped, the reason is not shown.
pub(super) async fn keep_reason(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    reason: &str,
) -> Result<(), StatementError> {
    sqlx::query!("update dalsegno.tasks set cancelled_because = $2 where id = $1", id, reason)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("store the reason of a cancellation"))
}
