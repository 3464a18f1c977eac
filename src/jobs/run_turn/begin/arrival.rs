//! The arrival of a session at the node of its task.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    domain::{
        agents::Node,
        feed, ids, messages,
        nodes::{self, NodeEntry},
        sessions::{Reason, SessionRow},
    },
    jobs::run_turn::{error::Error, load::assignment::Assignment, notices},
    transcript::Role,
};

/// A session that is not at the task's node yet, or has lost the node's instructions.
pub struct NodeArrival<'a> {
    node: &'a Node,
    entry_id: Uuid,
    /// True if the session is at the node already, and has lost the entry of the node.
    is_said_again: bool,
}

/// Checks if the node's instructions have to be sent. `None`: the session is at the node and has them. A task without a
/// node stays at the session's node; it only repeats instructions that a successor has lost.
pub async fn find_arrival<'a>(
    conn: &mut PgConnection,
    assignment: &'a Assignment<'_>,
    session: &SessionRow,
    now: DateTime<Utc>,
) -> Result<Option<NodeArrival<'a>>, Error> {
    let named = assignment.node.as_deref();
    let is_new = session.context_tokens == 0 && session.opened_because != Reason::New;
    let may_have_lost = is_new || !session.rejected_turns.is_empty();
    if named.is_none() && !may_have_lost {
        return Ok(None);
    }
    let stay = nodes::current(conn, session.id).await?;
    let here = stay.as_ref().and_then(|stay| assignment.catalogue.node(&stay.node).ok());
    // The instructions of a node whose file is gone are unknown.
    let Some(node) = named.or(here.map(Arc::as_ref)) else { return Ok(None) };
    let stay = stay.filter(|stay| stay.node == node.name);
    let is_said_again = stay.is_some();
    match stay {
        Some(stay) if stay.entry_id.is_some() => Ok(None),
        _ => Ok(Some(NodeArrival { node, entry_id: ids::new_at(now), is_said_again })),
    }
}

impl NodeArrival<'_> {
    /// Builds the entry with the node's instructions.
    pub fn entry(&self) -> messages::New {
        notices::message(self.entry_id, Role::Notice, self.node.entry.clone())
    }

    /// Builds the feed event of the arrival.
    pub fn event(&self, session: &SessionRow, assignment: &Assignment<'_>) -> feed::New {
        feed::New {
            campaign_id: Some(session.campaign_id),
            task_id: Some(assignment.task.id),
            session_id: Some(session.id),
            kind: feed::Kind::NodeEntered,
            data: json!({ "node": self.node.name, "said_again": self.is_said_again }),
        }
    }

    /// Records the session's node from this turn on. The session's row is locked, and unchanged since before the turn.
    pub async fn write(
        &self,
        conn: &mut PgConnection,
        session: &SessionRow,
        task_id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        if self.is_said_again {
            return Ok(nodes::record_repeated_entry(conn, session.id, self.entry_id).await?);
        }
        let entering = NodeEntry {
            session_id: session.id,
            campaign_id: session.campaign_id,
            agent: &session.agent,
            instance: &session.instance,
            node: &self.node.name,
            task_id,
            first_seq: session.last_seq + 1,
            entry_id: self.entry_id,
        };
        Ok(nodes::enter(conn, &entering, now).await?)
    }
}
