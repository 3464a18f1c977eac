//! The session's node, for the summary of a fold.

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::PgConnection;

use super::Error;
use crate::{
    context::compaction::{
        View,
        flow::{Flow, HANDOFFS_MAX, Handoff, OpenError, TASKS_MAX},
    },
    domain::{
        agents::Catalogue,
        nodes::{self, NodeVisit},
        sessions::{SessionRow, State},
        tasks::Task,
    },
    transcript::Role,
};

pub(super) struct NodeContext {
    pub(super) flow: Flow,
    /// True if the current summary belongs to the same stay at the node.
    pub(super) is_continued: bool,
    /// Place of the node's entry in the transcript, unless it is folded.
    pub(super) entry_seq: Option<i64>,
}

/// Source of the names of roles, and the task whose turn waits for the summary.
#[derive(Clone, Copy)]
pub struct NodeReader<'a> {
    pub catalogue: &'a Catalogue,
    pub waiting: Option<&'a Task>,
    /// The node of the waiting task, if it names one.
    pub waiting_node: Option<&'a str>,
}

/// Reads the session's node. `None` for a session without one.
pub(super) async fn of(
    conn: &mut PgConnection,
    reader: &NodeReader<'_>,
    session: &SessionRow,
    view: View<'_>,
) -> Result<Option<NodeContext>, Error> {
    let Some(stay) = nodes::current(&mut *conn, session.id).await? else { return Ok(None) };
    let limit = i64::try_from(HANDOFFS_MAX).unwrap_or(i64::MAX);
    let handoffs = nodes::handoffs(conn, session.campaign_id, limit).await?;
    let before = view.compaction.and_then(|compaction| compaction.flow.as_deref());
    let before = before.filter(|flow| flow.first_seq == stay.first_seq && flow.node == stay.node);
    // The node's instructions, as they were sent.
    let entry = view.tail.iter().find(|entry| Some(entry.id) == stay.entry_id);
    let flow = Flow {
        campaign_id: session.campaign_id,
        session_id: session.id,
        role: reader.catalogue.format_name(&session.agent, &session.instance),
        node: stay.node.clone(),
        entered_at: time(stay.entered_at),
        first_seq: stay.first_seq,
        entry: entry.map(|entry| entry.message.text.clone()).or_else(|| before?.entry.clone()),
        tasks: tasks(&stay, view, before),
        handoffs: handoffs.iter().map(|stay| handoff(reader, stay)).collect(),
        unresolved: unresolved(reader, session, &stay, view),
    };
    let entry_seq = entry.map(|entry| entry.seq);
    Ok(Some(NodeContext { flow, is_continued: before.is_some(), entry_seq }))
}

/// Lists the tasks of the stay. A prompt has the id of its task.
fn tasks(stay: &NodeVisit, view: View<'_>, before: Option<&Flow>) -> Vec<uuid::Uuid> {
    let asked = view.tail.iter().filter(|entry| entry.message.role == Role::User);
    let here = asked.filter(|entry| entry.seq >= stay.first_seq).map(|entry| entry.id);
    let mut tasks: Vec<_> =
        before.map_or(&[][..], |flow| &flow.tasks).iter().copied().chain(here).collect();
    tasks.drain(..tasks.len().saturating_sub(TASKS_MAX));
    tasks
}

fn handoff(reader: &NodeReader<'_>, stay: &NodeVisit) -> Handoff {
    Handoff {
        node: stay.node.clone(),
        role: reader.catalogue.format_name(&stay.agent, &stay.instance),
        task_id: stay.task_id,
        entered_at: time(stay.entered_at),
        left_at: stay.left_at.map(time),
    }
}

/// Returns the open request at the node: the waiting task, or else the last prompt if it has no answer. A task that is
/// about to enter another node is not open here.
fn unresolved(
    reader: &NodeReader<'_>,
    session: &SessionRow,
    stay: &NodeVisit,
    view: View<'_>,
) -> Option<OpenError> {
    if let Some(waiting) = reader.waiting {
        let is_here = reader.waiting_node.is_none_or(|node| node == stay.node);
        return is_here.then(|| OpenError { task_id: waiting.id, text: waiting.prompt.clone() });
    }
    let is_unanswered = matches!(session.state, State::Interrupted | State::Error);
    let mut asked = view.tail.iter().rev().filter(|entry| entry.message.role == Role::User);
    let last = asked.next().filter(|_| is_unanswered)?;
    Some(OpenError { task_id: last.id, text: last.message.text.clone() })
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
