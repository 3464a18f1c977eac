//! Ends of tasks, and the answers to the posts that asked for them.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{Error, State, Task, get};
use crate::domain::{Amount, StatementError, amount::Refusal, posts};

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
pub(super) async fn end_unanswered(
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

/// Returns the error for a task that should be running but is not.
pub(in crate::domain) async fn ended_error(conn: &mut PgConnection, id: Uuid) -> Error {
    match get(conn, id).await {
        Ok(task) => Error::Ended { id, state: task.state },
        Err(error) => error,
    }
}
