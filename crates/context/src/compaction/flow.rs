//! The state of the work when the messages of a node were folded: from rows and not from a model.
//!
//! It is placed in front of the summary. It quotes the node's instructions word for word, because their entry is folded
//! with the rest, and a summary might change the rules that apply.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    weight::Weight,
    xml::{Element, Fence, FenceSeed, Scope},
};

/// Limit of the handoffs, of which the newest are kept: more would tell a model nothing.
pub const HANDOFFS_MAX: usize = 20;
pub const TASKS_MAX: usize = 50;
/// Length up to which an unresolved message is quoted: all of it follows as the task.
const UNRESOLVED_MAX_CHARS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub campaign_id: Uuid,
    /// Session in which the folded messages can be read.
    pub session_id: Uuid,
    /// Role as people write it: `curator_2`.
    pub role: String,
    pub node: String,
    /// Time in RFC 3339, formatted by the caller, as all times here.
    pub entered_at: String,
    /// First entry of the node's exchanges. Messages folded before it are in the archive and not in the summary.
    pub first_seq: i64,
    /// Text of the node's entry.
    pub entry: Option<String>,
    /// Tasks of this node, in order.
    pub tasks: Vec<Uuid>,
    /// Handoffs of the whole campaign, in order.
    pub handoffs: Vec<Handoff>,
    /// Message that waited for its answer.
    pub unresolved: Option<OpenError>,
}

/// A role's stay at a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    pub node: String,
    pub role: String,
    pub task_id: Uuid,
    pub entered_at: String,
    /// Time of leaving; `None` if the role is still there.
    pub left_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenError {
    pub task_id: Uuid,
    pub text: String,
}

impl Flow {
    /// Renders the flow for the model.
    pub fn render(&self, fence: &Fence) -> String {
        let mut children = Vec::new();
        children.extend(self.entry.as_deref().map(|entry| Element::with_text("entry", entry)));
        let tasks =
            self.tasks.iter().map(|id| empty("asked_here").attribute("task", id.to_string()));
        children.extend(tasks);
        children.extend(self.handoffs.iter().map(handoff));
        children.extend(self.unresolved.as_ref().map(unresolved));
        Element::with_children("flow", children)
            .attribute("campaign", self.campaign_id.to_string())
            .attribute("role", self.role.as_str())
            .attribute("node", self.node.as_str())
            .attribute("entered_at", self.entered_at.as_str())
            .attribute("archived_in", self.session_id.to_string())
            .render(fence)
    }

    /// Returns the weight of the rendered flow. All fences have the same length.
    pub fn weight(&self) -> Weight {
        let fence = FenceSeed::from_bytes([0; 32]).fence(Scope::Summary { generation: 0 });
        Weight::of_text(&self.render(&fence))
    }
}

fn empty(name: &'static str) -> Element<'static> {
    Element::with_children(name, Vec::new())
}

fn handoff(handoff: &Handoff) -> Element<'_> {
    let element = empty("handoff")
        .attribute("node", handoff.node.as_str())
        .attribute("role", handoff.role.as_str())
        .attribute("task", handoff.task_id.to_string())
        .attribute("entered_at", handoff.entered_at.as_str());
    match &handoff.left_at {
        Some(left_at) => element.attribute("left_at", left_at.as_str()),
        None => element,
    }
}

fn unresolved(unresolved: &OpenError) -> Element<'_> {
    let text: String = unresolved.text.chars().take(UNRESOLVED_MAX_CHARS).collect();
    let element = if text.len() < unresolved.text.len() {
        Element::with_text("unresolved", text).attribute("cut", "true")
    } else {
        Element::with_text("unresolved", text)
    };
    element.attribute("task", unresolved.task_id.to_string())
}
