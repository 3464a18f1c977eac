//! Interrupting the running turns of a session or of an agent, and their descendants.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{Connection as _, PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    CancelOutcome, End, Error, Task,
    cancel::{StopResult, cancel_one, keep_reason},
    cascade,
    end::{UnansweredTask, answer_posts},
    ended_error, get,
};
use crate::{
    domain::{
        StatementError, campaigns,
        feed::{self, Kind},
        sessions, turns,
    },
    queue::{self, admin},
};

/// Urgency of an interrupt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = InterruptMode)]
pub enum InterruptMode {
    /// Stops at the next safe point: after the current call of the model, or after the tools that run. Nothing new begins.
    Soft,
    /// Stops immediately.
    #[default]
    Hard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InterruptResult {
    pub session_id: Uuid,
    pub task_id: Uuid,
    pub cancel: CancelOutcome,
}

/// Stops the running turn of a session by cancelling its task. Its worker stops the turn in order; output that has arrived stays.
pub async fn interrupt(
    conn: &mut PgConnection,
    session_id: Uuid,
    how: InterruptMode,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<InterruptResult, Error> {
    let (interrupted, unanswered) = stop_turn(&mut *conn, session_id, how, reason, now).await?;
    answer_posts(conn, unanswered, End::Cancelled, now).await?;
    Ok(interrupted)
}

/// Stops the running turn of a session. Returns the posts of the task and its descendants, which are still to be answered.
async fn stop_turn(
    conn: &mut PgConnection,
    session_id: Uuid,
    how: InterruptMode,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(InterruptResult, Vec<UnansweredTask>), Error> {
    sessions::get(&mut *conn, session_id).await?;
    let latest = turns::of_session(&mut *conn, session_id, None, 1).await?;
    let running = latest.first().filter(|turn| turn.state == turns::State::Running);
    let task_id = running.ok_or(Error::NothingRuns(session_id))?.task_id;
    let StopResult { cancelled: cancel, unanswered, .. } =
        cascade::stop(&mut *conn, task_id, how, reason, now).await?;
    let event = feed::New {
        session_id: Some(session_id),
        ..get(&mut *conn, task_id)
            .await?
            .event(Kind::TaskInterrupted, json!({ "how": how, "reason": reason }))
    };
    feed::append(conn, &[event], now).await?;
    Ok((InterruptResult { session_id, task_id, cancel }, unanswered))
}

/// Interrupts all running turns of an agent in a campaign, over all of its instances. Skips turns that have ended meanwhile. Posts are
/// answered last, when all other locks are taken.
pub async fn interrupt_agent(
    conn: &mut PgConnection,
    (campaign_id, agent): (Uuid, &str),
    how: InterruptMode,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Vec<InterruptResult>, Error> {
    campaigns::get(&mut *conn, campaign_id).await?;
    let (mut interrupted, mut unanswered) = (Vec::new(), Vec::new());
    for session_id in sessions::running_of_agent(&mut *conn, campaign_id, agent).await? {
        match stop_turn(&mut *conn, session_id, how, reason, now).await {
            Ok((one, posts)) => {
                interrupted.push(one);
                unanswered.extend(posts);
            }
            Err(Error::NothingRuns(_) | Error::Ended { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    answer_posts(conn, unanswered, End::Cancelled, now).await?;
    Ok(interrupted)
}

/// Returns true if a task was asked to stop at a safe point.
pub async fn is_asked_to_stop(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.tasks where id = $1 and stop_asked_at is not null) as "is_asked!""#,
        id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check whether a task has to stop"))
}

/// Stops a task at a safe point, or cancels it at once if it does not run. If it begins to run between both steps, its worker is told to
/// stop at once: it has just begun.
pub(super) async fn stop_softly(
    conn: &mut PgConnection,
    id: Uuid,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<StopResult, Error> {
    let task = get(&mut *conn, id).await?;
    if is_running(&mut *conn, task.job_id).await?
        && ask_running(&mut *conn, &task, reason, now).await?
    {
        return Ok(StopResult::without_answer(CancelOutcome::AtSafePoint));
    }
    cancel_one(conn, id, reason, now).await
}

async fn is_running(conn: &mut PgConnection, job_id: i64) -> Result<bool, Error> {
    match admin::find_job(conn, job_id).await {
        Ok(job) => Ok(job.summary.state == "running"),
        Err(queue::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks a running task to stop. Returns false if its run has put it off meanwhile: it may wait for a long time, and only a run reads the
/// request.
///
/// A run that lets its task wait for a budget or a rate limit locks the task before it reads the request. So either this waits for that
/// run, or the run sees the request. A cancellation locks the job first, hence the lock on the task is given back before one.
async fn ask_running(
    conn: &mut PgConnection,
    task: &Task,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let failed = |source| StatementError { action: "ask a task to stop", source };
    let mut inner = conn.begin().await.map_err(failed)?;
    let asked = sqlx::query!(
        "update dalsegno.tasks set stop_asked_at = coalesce(stop_asked_at, $2) where id = $1 and ended_at is null",
        task.id,
        now,
    )
    .execute(&mut *inner)
    .await
    .map_err(failed)?;
    if asked.rows_affected() == 0 {
        inner.rollback().await.map_err(failed)?;
        return Err(ended_error(conn, task.id).await);
    }
    keep_reason(&mut *inner, task.id, reason).await?;
    let still_runs = is_running(&mut inner, task.job_id).await?;
    if still_runs {
        inner.commit().await.map_err(failed)?;
    } else {
        inner.rollback().await.map_err(failed)?;
    }
    Ok(still_runs)
}
