//! What turns have changed with tools: so that an attempt that repeats an earlier one of its task does nothing twice.
//!
//! A model that is asked again asks for the same. Its first call is that of the earlier attempt, its second one is the second.
//! Each row names the run and the turn that asked for it last; another one takes rows over, one for each call, and does only what is
//! not there. A run begins a second turn where the first one did not fit, with the same question.
//!
//! A call that handed something out of which a part was cancelled is forgotten when its task is put on the queue again
//! ([`forget_cancelled`]), and then made anew as a whole: whoever was told of the cancelled tasks would wait for what nobody does. Posts,
//! texts and calls of which all is done are still there, and are not forgotten.
//!
//! Race: one turn calls several tools at once. Its task is locked until the change is committed ([`lock`]), so they count one
//! after the other.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Failed;

/// A change that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub task_id: Uuid,
    pub lease: i64,
    pub session_id: Uuid,
    pub turn: i32,
    /// SHA-256 of the tool and its arguments.
    pub digest: &'a [u8; 32],
}

/// A change that was made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    pub asked: Asked<'a>,
    pub tool: &'a str,
    pub answer: &'a str,
}

/// Lets no other call of this task change anything until the transaction ends. Before all other locks.
pub async fn lock(executor: impl PgExecutor<'_>, task_id: Uuid) -> Result<(), Failed> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('tool_calls ' || $1::text, 0))::text as locked",
        task_id.to_string(),
    )
    .fetch_one(executor)
    .await
    .map(drop)
    .map_err(Failed::to("wait for the other calls of a turn"))
}

/// What an earlier turn of the task was told, if it has done this and the current one has not asked for it yet.
pub async fn take_over(
    executor: impl PgExecutor<'_>,
    asked: Asked<'_>,
) -> Result<Option<String>, Failed> {
    sqlx::query_scalar!(
        "update dalsegno.tool_calls set lease = $3, session_id = $4, turn = $5
          where task_id = $1 and digest = $2
            and occurrence = (select min(occurrence) from dalsegno.tool_calls
                               where task_id = $1 and digest = $2
                                 and (lease < $3 or lease = $3 and (session_id, turn) is distinct from ($4, $5)))
         returning answer",
        asked.task_id,
        asked.digest,
        asked.lease,
        asked.session_id,
        asked.turn,
    )
    .fetch_optional(executor)
    .await
    .map_err(Failed::to("look for what an earlier attempt has done"))
}

/// Writes down what was done, with the change itself.
pub async fn keep(
    executor: impl PgExecutor<'_>,
    made: &Made<'_>,
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.tool_calls (task_id, session_id, lease, called_at, turn, digest, tool, answer, occurrence)
         select $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max(occurrence) + 1, 0) from dalsegno.tool_calls where task_id = $1 and digest = $6",
        made.asked.task_id,
        made.asked.session_id,
        made.asked.lease,
        now,
        made.asked.turn,
        made.asked.digest,
        made.tool,
        made.answer,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(Failed::to("keep what a tool has done"))
}

/// Forgets what a task has handed out of which one of these was named in the answer: asked for again, it is handed out again.
pub async fn forget_cancelled(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    cancelled: &[Uuid],
) -> Result<(), Failed> {
    sqlx::query!(
        "delete from dalsegno.tool_calls as c
          where c.task_id = $1 and c.tool in ('dispatch', 'workflows_start')
            and exists (select from unnest($2::uuid[]) as cancelled (id) where position(cancelled.id::text in c.answer) > 0)",
        task_id,
        cancelled,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(Failed::to("forget what was handed out and cancelled"))
}
