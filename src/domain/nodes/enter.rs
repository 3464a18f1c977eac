//! How a session comes to a node.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::Failed;

/// A session that goes to a node. Its row is locked.
#[derive(Debug, Clone, Copy)]
pub struct Entering<'a> {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
    pub node: &'a str,
    pub task_id: Uuid,
    /// Of the first message of the turn that enters.
    pub first_seq: i64,
    pub entry_id: Uuid,
}

/// Leaves the node where the session stands, if it stands at one, and enters this one.
pub async fn enter(
    conn: &mut PgConnection,
    entering: &Entering<'_>,
    now: DateTime<Utc>,
) -> Result<(), Failed> {
    let action = "enter a node";
    sqlx::query!(
        "update dalsegno.session_nodes set left_at = $2, last_seq = $3 where session_id = $1 and left_at is null",
        entering.session_id,
        now,
        entering.first_seq - 1,
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to(action))?;
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
    .map_err(Failed::to(action))
}

/// Notes that what the node asks for is said again, because the session has lost it.
pub async fn say_again(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    entry_id: Uuid,
) -> Result<(), Failed> {
    sqlx::query!(
        "update dalsegno.session_nodes set entry_id = $2 where session_id = $1 and left_at is null",
        session_id,
        entry_id,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("say again what a node asks for"))
}

/// Has a successor stand where its predecessor stood. `has_entry`: it took over what says what the node asks for.
pub async fn inherit(
    executor: impl PgExecutor<'_>,
    from: Uuid,
    to: Uuid,
    has_entry: bool,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.session_nodes
                (session_id, campaign_id, task_id, entered_at, first_seq, entry_id, ordinal, agent, instance, node)
         select $2, campaign_id, task_id, entered_at, first_seq, case when $3 then entry_id end, 1, agent, instance, node
           from dalsegno.session_nodes where session_id = $1 and left_at is null",
        from,
        to,
        has_entry,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("hand the place of a session on to the next one"))
}
