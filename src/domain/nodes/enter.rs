//! Entering and inheriting nodes.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// A session that enters a node. The caller has locked its row.
#[derive(Debug, Clone, Copy)]
pub struct NodeEntry<'a> {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub node: &'a str,
    pub task_id: Uuid,
    /// The first place of the turn that enters.
    pub first_seq: i64,
    pub entry_id: Uuid,
}

/// Ends the session's current stay, if it has one, and begins a stay at this node.
pub async fn enter(
    conn: &mut PgConnection,
    entering: &NodeEntry<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let action = "enter a node";
    sqlx::query!(
        "update dalsegno.session_nodes set left_at = $2, last_seq = $3 where session_id = $1 and left_at is null",
        entering.session_id,
        now,
        entering.first_seq - 1,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to(action))?;
    sqlx::query!(
        "insert into dalsegno.session_nodes
                (session_id, campaign_id, task_id, entered_at, first_seq, entry_id, ordinal, agent, instance, node)
         select $1, $2, $3, $4, $5, $6, coalesce(max(ordinal), 0) + 1, $7, $8, $9
           from dalsegno.session_nodes where session_id = $1",
        entering.session_id,
        entering.campaign_id,
        entering.task_id,
        now,
        entering.first_seq,
        entering.entry_id,
        entering.agent,
        entering.instance,
        entering.node,
    )
    .execute(conn)
    .await
    .map(|_| ())
    .map_err(StatementError::to(action))
}

/// Records a new entry for the current stay: the node's instructions were repeated, because the session had lost them.
pub async fn record_repeated_entry(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    entry_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.session_nodes set entry_id = $2 where session_id = $1 and left_at is null",
        session_id,
        entry_id,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("record that a session was shown its node again"))
}

/// Copies a stay of a session to one that continues it, where it is the first and current one. `has_entry`: that session inherited the
/// message with the node's instructions.
pub async fn inherit(
    executor: impl PgExecutor<'_>,
    (from, ordinal): (Uuid, i32),
    to: Uuid,
    has_entry: bool,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.session_nodes
                (session_id, campaign_id, task_id, entered_at, first_seq, entry_id, ordinal, agent, instance, node)
         select $2, campaign_id, task_id, entered_at, first_seq, case when $3 then entry_id end, 1, agent, instance, node
           from dalsegno.session_nodes where session_id = $1 and ordinal = $4",
        from,
        to,
        has_entry,
        ordinal,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("copy the node of a session to the next session"))
}
