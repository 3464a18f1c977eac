//! State changes of tasks: started, ended, cancelled, retried.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::{
    Cancellation, CancelledJob, CancelledTask, DescendantCounts, Error, InterruptMode,
    RunJoinedTurn, RunTurn, State, Task, by_job, cascade, dead_letter, get, lane, waits,
};
use crate::{
    domain::{
        Amount, StatementError,
        amount::Refusal,
        feed::{self, Kind},
        posts, tool_calls, turns,
    },
    queue::{self, admin},
};

/// The outcome of a turn for its task.
#[derive(Debug, Clone, Copy)]
pub enum End<'a> {
    Done {
        result: &'a str,
        /// The same as JSON, if the task has a result schema.
        result_json: Option<&'a Value>,
    },
    Failed {
        error: &'a str,
        /// The refusal of the budget at which it failed.
        refusal: Option<&'a Refusal>,
    },
    /// Failed: the answer does not match the result schema.
    Mismatched {
        result: &'a str,
        error: &'a str,
    },
    Cancelled,
    /// Not ended: waits for its next attempt.
    Queued,
    /// Not ended: the next turn asks for an answer without this fault.
    Corrected {
        fault: &'a str,
    },
}

/// The columns of a task that its end sets.
#[derive(Debug, Clone, Copy)]
pub(in crate::domain) struct EndColumns<'a> {
    pub state: State,
    pub result: Option<&'a str>,
    pub result_json: Option<&'a Value>,
    pub error: Option<&'a str>,
    pub refusal: Option<&'a Refusal>,
    /// Set if a correction follows; `None` keeps that of an open task.
    pub fault: Option<&'a str>,
}

impl<'a> End<'a> {
    /// Returns the outcome for the asker. `None`: the task continues.
    pub fn outcome(self) -> Option<posts::Outcome<'a>> {
        match self {
            Self::Done { result, .. } => Some(posts::Outcome::Done { result }),
            Self::Failed { error, .. } | Self::Mismatched { error, .. } => {
                Some(posts::Outcome::Failed { error })
            }
            Self::Cancelled => Some(posts::Outcome::Cancelled),
            Self::Queued | Self::Corrected { .. } => None,
        }
    }

    /// Returns true if the task continues.
    pub fn is_open(self) -> bool {
        self.outcome().is_none()
    }

    pub(in crate::domain) fn columns(self) -> EndColumns<'a> {
        let of = |state| EndColumns {
            state,
            result: None,
            result_json: None,
            error: None,
            refusal: None,
            fault: None,
        };
        match self {
            Self::Done { result, result_json } => {
                EndColumns { result: Some(result), result_json, ..of(State::Done) }
            }
            Self::Failed { error, refusal } => {
                EndColumns { error: Some(error), refusal, ..of(State::Failed) }
            }
            Self::Mismatched { result, error } => {
                EndColumns { result: Some(result), error: Some(error), ..of(State::Failed) }
            }
            Self::Cancelled => of(State::Cancelled),
            Self::Queued => of(State::Queued),
            Self::Corrected { fault } => EndColumns { fault: Some(fault), ..of(State::Queued) },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TaskCancelled)]
pub enum CancelOutcome {
    AtOnce,
    /// The task runs. Its worker was asked to stop, and will write the end.
    Requested,
    /// The task runs. Its worker ends it at the next safe point; an answer that comes first counts.
    AtSafePoint,
    /// The task had ended before. Only descendants were cancelled.
    HadEnded,
}

/// Counts that a task's turn was put off before it began, and returns how often in a row. Returns an error if the task has ended.
pub async fn count_wait(conn: &mut PgConnection, id: Uuid) -> Result<u32, Error> {
    let n_waits = sqlx::query_scalar!(
        "update dalsegno.tasks set n_waits = n_waits + 1 where id = $1 and state in ('queued', 'running') returning n_waits",
        id,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("postpone a task"))?;
    match n_waits {
        Some(n_waits) => Ok(u32::try_from(n_waits).unwrap_or(0)),
        None => Err(ended_error(conn, id).await),
    }
}

/// Records that a task waits for its provider until then, and returns the start of the wait. A wait that ended an hour ago is over, and a
/// new one begins. Returns an error if the task has ended.
pub async fn wait_for_provider(
    conn: &mut PgConnection,
    id: Uuid,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, Error> {
    let since = sqlx::query_scalar!(
        "insert into dalsegno.busy_tasks as b (task_id, since, until)
         select t.id, $3, $2 from dalsegno.tasks as t where t.id = $1 and t.state in ('queued', 'running')
         on conflict (task_id) do update
            set since = case when b.until > $3::timestamptz - interval '1 hour' then b.since else $3 end, until = $2
         returning b.since",
        id,
        until,
        now,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("let a task wait for its provider"))?;
    match since {
        Some(since) => Ok(since),
        None => Err(ended_error(conn, id).await),
    }
}

/// Records that a queued task runs: its turn, which has begun before, goes on. Returns an error if the task has ended.
pub async fn go_on(conn: &mut PgConnection, id: Uuid) -> Result<(), Error> {
    let hit = sqlx::query!(
        "update dalsegno.tasks set state = 'running' where id = $1 and state in ('queued', 'running')",
        id,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("go on with the turn of a task"))?;
    match hit.rows_affected() {
        1 => Ok(()),
        _ => Err(ended_error(conn, id).await),
    }
}

/// Ends a task's wait for its provider; a later wait begins anew.
pub async fn end_provider_wait(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.busy_tasks where task_id = $1", id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("record that a task no longer waits for its provider"))
}

/// Returns the start of a task's current wait for its provider.
pub async fn busy_since(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    sqlx::query_scalar!("select since from dalsegno.busy_tasks where task_id = $1", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("find the wait of a task for its provider"))
}

/// Returns the start of the longest current wait for a provider.
pub async fn longest_busy_since(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StatementError> {
    sqlx::query_scalar!(
        "select min(b.since) from dalsegno.busy_tasks as b join dalsegno.tasks as t on t.id = b.task_id
          where t.ended_at is null and b.until > $1::timestamptz - interval '1 hour'",
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the longest wait for a provider"))
}

/// Ends a task or sends it back to the queue, and charges the cost of the turn. Returns an error if the task has ended.
pub async fn end(
    conn: &mut PgConnection,
    id: Uuid,
    end: End<'_>,
    spent: Amount,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    match write_end(&mut *conn, id, None, end, spent, now).await? {
        Some(unanswered) => answer_posts(conn, unanswered, end, now).await,
        None => Err(ended_error(conn, id).await),
    }
}

/// Ends a task without a turn. `task` is the row as it was read. If the task has another job by now, it is not ended, because the
/// caller's knowledge is about the old job.
pub(super) async fn end_without_turn(
    conn: &mut PgConnection,
    task: &Task,
    end: End<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let unanswered = end_unanswered(&mut *conn, task, end, now).await?;
    answer_posts(conn, unanswered, end, now).await
}

/// Ends a task without a turn, and leaves the answer to its post to the caller.
async fn end_unanswered(
    conn: &mut PgConnection,
    task: &Task,
    end: End<'_>,
    now: DateTime<Utc>,
) -> Result<Option<UnansweredTask>, Error> {
    match write_end(&mut *conn, task.id, Some(task.job_id), end, Amount::ZERO, now).await? {
        Some(unanswered) => Ok(unanswered),
        None => Err(match get(conn, task.id).await? {
            found if found.ended_at.is_none() => Error::Requeued(task.id),
            found => Error::Ended { id: task.id, state: found.state },
        }),
    }
}

/// A task that has ended and whose post is still to be answered.
pub(super) struct UnansweredTask {
    campaign_id: Uuid,
    task_id: Uuid,
    agent: String,
    instance: String,
    asked_in: Uuid,
}

/// Answers the posts of ended tasks. Locks the board until the transaction ends, so a caller that ends several tasks answers after all of
/// them.
pub(super) async fn answer_posts(
    conn: &mut PgConnection,
    unanswered: impl IntoIterator<Item = UnansweredTask>,
    end: End<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(outcome) = end.outcome() else { return Ok(()) };
    for one in unanswered {
        let ended = posts::EndedTask {
            campaign_id: one.campaign_id,
            task_id: one.task_id,
            agent: &one.agent,
            instance: &one.instance,
            asked_in: one.asked_in,
            outcome,
            said: None,
        };
        posts::answer(&mut *conn, &ended, now).await?;
    }
    Ok(())
}

/// Writes the end of a task. `None`: it has ended already, or has another job.
async fn write_end(
    conn: &mut PgConnection,
    id: Uuid,
    job_id: Option<i64>,
    end: End<'_>,
    spent: Amount,
    now: DateTime<Utc>,
) -> Result<Option<Option<UnansweredTask>>, Error> {
    let EndColumns { state, result, error, refusal, .. } = end.columns();
    let ended_at = (state != State::Queued).then_some(now);
    let hit = sqlx::query!(
        "update dalsegno.tasks
            set state = $2, result = $3, error = $4, ended_at = $5, result_fault = case when $2 = 'queued' then result_fault end,
                spent_micros = spent_micros + $6, spent_tokens = spent_tokens + $7, budget_refusal = $9
          where id = $1 and ($8::bigint is null or job_id = $8) and state in ('queued', 'running')
        returning campaign_id, agent, instance, post_id",
        id,
        state as State,
        result,
        error,
        ended_at,
        spent.micros,
        spent.tokens,
        job_id,
        refusal.map(Json) as _,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("end a task"))?;
    Ok(hit.map(|task| {
        let (agent, instance) = (task.agent, task.instance);
        let of = |asked_in| UnansweredTask {
            campaign_id: task.campaign_id,
            task_id: id,
            agent,
            instance,
            asked_in,
        };
        task.post_id.map(of)
    }))
}

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

/// Puts a failed or cancelled task on the queue again, at the end of its lane. It gets fresh attempts, and keeps its request's priority
/// and earliest start; the time that its answer may take begins again. A task that has waited for others waits again for those that have not
/// ended. A trigger removes the refusal of a budget with the error.
pub async fn retry(conn: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> Result<Task, Error> {
    let task = get(&mut *conn, id).await?;
    if !matches!(task.state, State::Failed | State::Cancelled) {
        return Err(match task.state {
            State::Done => Error::Ended { id, state: task.state },
            state => Error::NotEnded { id, state },
        });
    }
    if is_erased(&mut *conn, task.campaign_id).await? {
        return Err(Error::Erased(id));
    }
    let (priority, run_at) = timing(&mut *conn, id).await?;
    let options = queue::Options {
        lane: Some(lane(task.campaign_id, &task.agent, &task.instance)),
        group_key: Some(task.campaign_id.to_string()),
        priority: Some(priority),
        run_at: run_at.filter(|run_at| *run_at > now),
        headers: Some(serde_json::json!({ "task": id })),
        ..queue::Options::default()
    };
    // A new job, because the old one may have been removed.
    dead_letter::discard_last_job(&mut *conn, task.job_id).await?;
    let asked = format!("again {id}");
    let waits = waits::has_any(&mut *conn, id).await?;
    let job_id = match waits {
        false => queue::enqueue(&mut *conn, &RunTurn { asked }, &options).await?.job_id,
        true => {
            waits::restart_wait(&mut *conn, id).await?;
            let jobs = vec![(RunJoinedTurn { asked }, options)];
            let enqueued = queue::enqueue_waiting(&mut *conn, jobs).await?;
            enqueued.first().map_or(task.job_id, |job| job.job_id)
        }
    };
    let hit = sqlx::query!(
        "update dalsegno.tasks
            set state = 'queued', started_at = null, ended_at = null, result = null, error = null, result_fault = null, cancelled_because = null, n_waits = 0, stop_asked_at = null, job_id = $2,
                run_at = case when within_secs is null then run_at else greatest(run_at, $4) end,
                first_job_id = coalesce(first_job_id, job_id)
          where id = $1 and job_id = $3 and state in ('failed', 'cancelled')",
        id,
        job_id,
        task.job_id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("retry a task"))?;
    // Zero rows: a concurrent call retries it. The caller rolls back, which also removes the second job.
    let task = get(&mut *conn, id).await?;
    if hit.rows_affected() != 1 {
        return Err(Error::NotEnded { id, state: task.state });
    }
    end_provider_wait(&mut *conn, id).await?;
    let cancelled = cascade::list_cancelled_descendants(&mut *conn, id).await?;
    tool_calls::delete_cancelled(&mut *conn, id, &cancelled).await?;
    let event = task.event(Kind::TaskQueued, json!({ "again": true }));
    feed::append(conn, &[event], now).await?;
    Ok(task)
}

/// Reads the priority and the earliest start of a task's request.
async fn timing(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<(i32, Option<DateTime<Utc>>), StatementError> {
    let row = sqlx::query!("select priority, run_at from dalsegno.tasks where id = $1", id)
        .fetch_one(conn)
        .await
        .map_err(StatementError::to("read the due time of a task"))?;
    Ok((row.priority.into(), row.run_at))
}

/// Returns the error for a task that should be running but is not.
pub(in crate::domain) async fn ended_error(conn: &mut PgConnection, id: Uuid) -> Error {
    match get(conn, id).await {
        Ok(task) => Error::Ended { id, state: task.state },
        Err(error) => error,
    }
}

/// Returns true if the campaign's texts are erased or an erasure has begun.
async fn is_erased(conn: &mut PgConnection, campaign_id: Uuid) -> Result<bool, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.is_erased($1) as "is_erased!""#, campaign_id)
        .fetch_one(conn)
        .await
        .map_err(StatementError::to("find an erasure"))
}
