//! Links between the tasks of a campaign.
//!
//! A waiting task has no slot and no place in its lane. Tasks that are added to the lane later run first, so the agent's conversation
//! continues meanwhile. The task takes its place when the last of those that it waits for has ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Error, State};
use crate::domain::agents::is_name;

/// Maximum number of tasks that one task may wait for. Joins of this size still need one query only.
pub const MAX_PREDECESSORS: usize = 1_000;

/// Maximum number of children, which the continuation waits for.
pub const MAX_CHILDREN: usize = MAX_PREDECESSORS;

/// Maximum number of flow templates that a task may list, as in `dalsegno.are_flow_templates`.
pub(super) const MAX_FLOW_TEMPLATES: usize = 100;

/// A task that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum TaskLink {
    Task(Uuid),
    /// A task that comes before this one in the same request, by its index from 0.
    Item {
        item: usize,
    },
    /// A task that the same caller added under this idempotency key, earlier or before this one in the same request.
    Key {
        key: String,
    },
}

/// Reaction to the failure or cancellation of a task that this one waits for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum OnFailure {
    /// Waits for the others, gets all results, and runs.
    #[default]
    Run,
    /// Is cancelled at once, with the failed task as the reason.
    Cancel,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Links<'a> {
    /// The tasks to wait for. The task runs when all of them have ended, and gets their results in this order.
    pub depends_on: &'a [TaskLink],
    pub on_failure: OnFailure,
    /// The API key, by its name, whose tasks it may wait for. `None`: any task of the campaign.
    pub only_of: Option<&'a str>,
    /// The parent: the task that added this one as a child.
    pub parent_id: Option<Uuid>,
    /// The task that this one continues.
    pub continues_id: Option<Uuid>,
    /// The flow that it belongs to.
    pub flow: Option<FlowStep<'a>>,
    /// Flow templates that the agent may start in the task. `None`: those of the agent's file.
    pub flow_templates: Option<&'a [String]>,
}

/// The place of a task in a flow.
#[derive(Debug, Clone, Copy)]
pub struct FlowStep<'a> {
    pub flow_id: Uuid,
    pub step: &'a str,
    /// Index among all tasks of the flow, from 0. A retried step takes the place of the previous one.
    pub place: i32,
    /// The places of its prompt that stand for fields of results of earlier steps, as `tasks.step_fields` has them.
    pub fields: Option<&'a Value>,
}

impl Links<'_> {
    pub(super) fn is_none(&self) -> bool {
        !self.waits()
            && self.parent_id.is_none()
            && self.continues_id.is_none()
            && self.flow.is_none()
            && self.flow_templates.is_none()
    }

    pub(super) fn waits(&self) -> bool {
        !self.depends_on.is_empty()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        match self.depends_on.len() {
            n if n > MAX_PREDECESSORS => return Err(Error::TooManyPredecessors(n)),
            _ => {}
        }
        let names = self.flow_templates.unwrap_or_default();
        match names.iter().find(|name| !is_name(name)) {
            Some(bad) => Err(Error::FlowTemplate(bad.clone())),
            None if names.len() > MAX_FLOW_TEMPLATES => {
                Err(Error::TooManyFlowTemplates(names.len()))
            }
            None => Ok(()),
        }
    }

    /// Returns the links as part of the digest of an idempotency key, in the form of `dalsegno.add_task`. `None` for a task without
    /// links, whose digest must stay the same.
    pub(super) fn digest_text(&self) -> Option<String> {
        if !self.waits() && self.parent_id.is_none() && self.continues_id.is_none() {
            return None;
        }
        let after: Vec<String> = self.depends_on.iter().map(TaskLink::to_text).collect();
        let mut words = format!("after {} {}", after.join(","), self.on_failure.as_str());
        for (word, id) in [("parent", self.parent_id), ("continues", self.continues_id)] {
            words.extend(id.map(|id| format!(" {word} {id}")));
        }
        Some(words)
    }
}

impl TaskLink {
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Task(id) => id.to_string(),
            Self::Item { item } => format!("item {item}"),
            Self::Key { key } => format!("key {key}"),
        }
    }
}

impl OnFailure {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Cancel => "cancel",
        }
    }
}

impl State {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predecessors_are_named_by_id_position_or_key() {
        let id = Uuid::from_u128(5);
        let text = format!(r#"["{id}", {{"item": 0}}, {{"key": "part-1"}}]"#);
        let read: Vec<TaskLink> = serde_json::from_str(&text).unwrap();
        let key = TaskLink::Key { key: "part-1".to_owned() };
        assert_eq!(read, [TaskLink::Task(id), TaskLink::Item { item: 0 }, key]);
        for bad in [r#"["x"]"#, "[5]", r#"[{"item": -1}]"#] {
            assert!(serde_json::from_str::<Vec<TaskLink>>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_digest_of_a_task_without_links_is_unchanged() {
        assert_eq!(Links::default().digest_text(), None);
        let after = [TaskLink::Task(Uuid::nil())];
        let links = Links { depends_on: &after, ..Links::default() };
        assert_eq!(links.digest_text().unwrap(), format!("after {} run", Uuid::nil()));
    }
}
