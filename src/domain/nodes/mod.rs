//! Nodes: the named places in the work, and the stays of sessions at them.
//!
//! A task may belong to a node. Its turn enters the node, unless the session is already there. A task without a node leaves the session
//! where it is. A stay ends when the next one begins, so a session is at one node at most. Coming back to a node begins another stay.
//!
//! Races: none of its own. Stays are written in the transaction that begins a turn, which holds the session's row.

mod enter;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::enter::{NodeEntry, enter, inherit, record_repeated_entry};
use super::StatementError;

/// The stay of a session at a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = NodeStay)]
pub struct NodeVisit {
    /// Number of the stay within its session, from 1.
    pub ordinal: i32,
    pub node: String,
    pub agent: String,
    pub instance: String,
    /// The task whose turn entered the node.
    pub task_id: Uuid,
    pub entered_at: DateTime<Utc>,
    /// End of the stay. Null while the session is at the node.
    pub left_at: Option<DateTime<Utc>>,
    /// First place of the stay in the transcript.
    pub first_seq: i64,
    pub last_seq: Option<i64>,
    /// The message with the node's instructions.
    #[serde(skip)]
    pub entry_id: Option<Uuid>,
}

/// Reads the current stay of a session.
pub async fn current(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Option<NodeVisit>, StatementError> {
    sqlx::query_as!(
        NodeVisit,
        "select ordinal, node, agent, instance, task_id, entered_at, left_at, first_seq, last_seq, entry_id
           from dalsegno.session_nodes where session_id = $1 and left_at is null",
        session_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the current node of a session"))
}

/// Reads the stay of a session at a place of its transcript: the last one that had begun.
pub async fn stay_at(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    seq: i64,
) -> Result<Option<NodeVisit>, StatementError> {
    sqlx::query_as!(
        NodeVisit,
        "select ordinal, node, agent, instance, task_id, entered_at, left_at, first_seq, last_seq, entry_id
           from dalsegno.session_nodes where session_id = $1 and first_seq <= $2 order by ordinal desc limit 1",
        session_id,
        seq,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the node of a session at a turn"))
}

/// Lists the stays of a session, in order.
pub async fn of_session(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<NodeVisit>, StatementError> {
    sqlx::query_as!(
        NodeVisit,
        "select ordinal, node, agent, instance, task_id, entered_at, left_at, first_seq, last_seq, entry_id
           from dalsegno.session_nodes where session_id = $1 order by ordinal",
        session_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the visited nodes of a session"))
}

/// Lists the last stays of a campaign, in the order in which they began. A stay that a successor has inherited is listed once, as the
/// successor has it.
pub async fn handoffs(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<Vec<NodeVisit>, StatementError> {
    let newest_first = sqlx::query_as!(
        NodeVisit,
        "select distinct on (entered_at, task_id)
                ordinal, node, agent, instance, task_id, entered_at, left_at, first_seq, last_seq, entry_id
           from dalsegno.session_nodes where campaign_id = $1
          order by entered_at desc, task_id desc, session_id desc limit $2",
        campaign_id,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the hand-offs of a campaign"))?;
    Ok(newest_first.into_iter().rev().collect())
}

/// Removes the stays of these sessions permanently.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.session_nodes where session_id = any($1)", session_ids)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove the visited nodes of sessions"))
}
