//! Flows: tasks that are made together from a template, each waiting for those before it.
//!
//! A template is `<folder>/<name>.md`: front matter with inputs and steps, then one `## step` per prompt. It is read at each use, and one
//! with problems is refused without the others. A flow stores only the template's name, because its tasks have the prompts.
//!
//! A step may name a node, and a template may ask for an improvement phase after its steps (`improvement.rs`).
//!
//! The state of a flow is derived from its tasks, and not stored.
//!
//! A pause holds the flow's waiting jobs. Other jobs are held when their turn would begin: those that were locked, put off or held by a
//! person at that time, and those of retried steps.

mod control;
mod critical_path;
mod error;
mod format;
mod improvement;
mod retry;
mod show;
mod start;
mod step_fields;
mod steps;
mod template;
mod templates;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::{
    control::{cancel, erase_inputs, hold_pause, pause, resume},
    critical_path::{CriticalPath, critical_path},
    error::Error,
    format::template_format,
    improvement::Improvement,
    retry::{n_more, retry},
    show::{Filter, FlowDetail, StepTask, find, get, is_paused, list, show},
    start::{InputValue, Inputs, New, PlannedStep, n_tasks, plan, start},
    template::{Input, Step, StepOutline, Template},
    templates::{BrokenTemplate, Problems, Templates, check_names},
};
use super::{
    feed,
    limits::{LimitEffect::Refused, LimitEntry},
    tasks,
};
use crate::settings::Checks;

/// Maximum number of tasks that one call adds: as many as one task may wait for.
pub const MAX_TASKS: usize = tasks::MAX_PREDECESSORS;

pub const LIMITS: &[LimitEntry] =
    &[LimitEntry::fixed("tasks of a flow", MAX_TASKS as u64, Refused(Error::TOO_MANY.code))];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub folder: std::path::PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Flow {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub template: String,
    pub state: State,
    /// The inputs of the start.
    #[schema(value_type = Object)]
    pub inputs: serde_json::Value,
    pub tasks: i64,
    pub done: i64,
    pub failed: i64,
    pub cancelled: i64,
    /// Tasks that have not ended.
    pub open: i64,
    pub added_by: Option<String>,
    pub created_at: DateTime<Utc>,
    pub paused_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// A flow after its cancellation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CancelledFlow {
    #[serde(flatten)]
    pub flow: Flow,
    /// Counts of the cancelled tasks, including those that depend on them.
    pub cancel: tasks::DescendantCounts,
    /// Number of its tasks that had ended before.
    pub had_ended: i64,
}

/// The state, derived from the latest task at each place.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FlowState)]
pub enum State {
    Running,
    /// None of its tasks begins.
    Paused,
    Done,
    /// All have ended, and one has failed.
    Failed,
    /// All have ended, none has failed, and one was cancelled.
    Cancelled,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.folder("flows.folder", &self.folder);
    }
}

impl Flow {
    /// Builds an event of the flow. The database writes the event of its end, because tasks end in many ways.
    fn event(&self, kind: feed::Kind, more: serde_json::Value) -> feed::New {
        let mut data = serde_json::json!({ "flow_id": self.id, "template": self.template });
        if let (Some(data), serde_json::Value::Object(more)) = (data.as_object_mut(), more) {
            data.extend(more);
        }
        feed::New {
            campaign_id: Some(self.campaign_id),
            task_id: None,
            session_id: None,
            kind,
            data,
        }
    }
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}
