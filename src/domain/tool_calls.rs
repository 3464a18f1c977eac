//! Tool calls that changed something, so that a repeated attempt of a task repeats no change.
//!
//! A model that is asked again makes the same calls. Its first call corresponds to the first one of the earlier attempt, the second to
//! the second. Each row names the run and the turn that last asked for it. A later turn takes over one row per call, and carries out only
//! calls without a row. A run begins a second turn, with the same question, if the first one did not fit the window.
//!
//! A call whose children or flows were partly cancelled is forgotten when its task is retried ([`delete_cancelled`]), and made again as a
//! whole. Otherwise the agent would wait for cancelled tasks. Posts, texts and calls whose tasks are all done remain valid and are kept.
//!
//! Race: a turn makes several calls at once. Its task is locked until each change is committed ([`lock`]), so they are counted one after
//! the other.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::StatementError;

/// A call that asks for a change.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallKey<'a> {
    pub task_id: Uuid,
    pub lease: i64,
    pub session_id: Uuid,
    pub turn: i32,
    /// SHA-256 of the tool and its arguments.
    pub digest: &'a [u8; 32],
}

/// A call that was carried out.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredCall<'a> {
    pub asked: ToolCallKey<'a>,
    pub tool: &'a str,
    pub answer: &'a str,
}

/// Locks the changes of a task's tool calls until the transaction ends. Must be taken before all other locks.
pub async fn lock(executor: impl PgExecutor<'_>, task_id: Uuid) -> Result<(), StatementError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('tool_calls ' || $1::text, 0))::text as locked",
        task_id.to_string(),
    )
    .fetch_one(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("wait for the other calls of a turn"))
}

/// Takes over an equal call of an earlier turn of the task, and returns its answer. `None` if none is left.
pub async fn take_over(
    executor: impl PgExecutor<'_>,
    asked: ToolCallKey<'_>,
) -> Result<Option<String>, StatementError> {
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
    .map_err(StatementError::to("find the calls of an earlier attempt"))
}

/// Stores a call, in the transaction of its change.
pub async fn store(
    executor: impl PgExecutor<'_>,
    made: &AnsweredCall<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
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
    .map_err(StatementError::to("store the call of a tool"))
}

/// Forgets the calls of a task that added one of these cancelled tasks or flows. Repeated calls add them again.
pub async fn delete_cancelled(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    cancelled: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.tool_calls as c
          where c.task_id = $1 and c.tool in ('dispatch', 'flows_start')
            and exists (select from unnest($2::uuid[]) as cancelled (id) where position(cancelled.id::text in c.answer) > 0)",
        task_id,
        cancelled,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove cancelled children from the stored calls"))
}
