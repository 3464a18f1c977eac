//! Flows: tasks that are made together from a template, each waiting for those before it.
//!
//! A template is `<folder>/<name>.md`: front matter with inputs and steps, then one `## step` per prompt. It is read when it is
//! asked for, and refused alone where it has problems; a flow keeps nothing of it but its name, because the prompts of its
//! tasks say what the file said.
//!
//! What has become of a flow follows from its tasks: nothing of it is stored twice.
//!
//! A pause puts aside what waits for its turn. What comes later, by whatever way (a job that somebody held or had locked, one that
//! was put off, a step that is tried again), is put aside when its turn would begin.

mod control;
mod retry;
mod shelf;
mod show;
mod start;
mod template;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::{
    control::{cancel, erase_words, hold_pause, pause, resume},
    retry::{n_more, retry},
    shelf::{BrokenTemplate, Problems, Templates},
    show::{Filter, Shown, StepTask, find, get, is_paused, list, show},
    start::{Given, Inputs, New, n_tasks, start},
    template::{Input, Step, Template},
};
use super::{Failed, agents, campaigns, feed, tasks};
use crate::config::Checks;

/// One call adds at most so many tasks: as many as one task may wait for.
pub const MAX_TASKS: usize = tasks::MAX_PREDECESSORS;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub folder: std::path::PathBuf,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Flow {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub template: String,
    pub state: State,
    /// What it was started with.
    #[schema(value_type = Object)]
    pub inputs: serde_json::Value,
    pub tasks: i64,
    pub done: i64,
    pub failed: i64,
    pub cancelled: i64,
    /// Neither of these yet.
    pub open: i64,
    pub added_by: Option<String>,
    pub created_at: DateTime<Utc>,
    pub paused_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// A flow after its cancellation.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CancelledFlow {
    #[serde(flatten)]
    pub flow: Flow,
    /// Of its tasks, with what hangs on them.
    pub cancel: tasks::Below,
    /// How many of its tasks had ended before.
    pub had_ended: i64,
}

/// Follows from the latest task at each place.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FlowState)]
pub enum State {
    Running,
    /// Nothing of it begins.
    Paused,
    Done,
    /// All have ended, and one has failed.
    Failed,
    /// All have ended, none has failed, and one was cancelled.
    Cancelled,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no flow {0}: `dalsegno flow ls` lists them")]
    Unknown(Uuid),
    #[error("there is no template `{name}`: {advice}")]
    NoTemplate { name: String, advice: String },
    #[error(
        "template `{name}` cannot be started: {problem}; `dalsegno flow templates` lists every problem"
    )]
    BrokenTemplate { name: String, problem: String },
    #[error("the flow has no step `{step}`: {advice}")]
    NoStep { step: String, advice: String },
    #[error("the inputs do not fit the template: {}", .0.join("; "))]
    Inputs(Vec<String>),
    #[error(
        "the flow would have {0} tasks, and {MAX_TASKS} is the most: start several with shorter lists"
    )]
    TooMany(usize),
    #[error(
        "flow {0} has ended: `dalsegno flow retry {0} --from STEP` goes on from one of its steps"
    )]
    Ended(Uuid),
    #[error("flow {0} is paused: `dalsegno flow resume {0}` first")]
    Paused(Uuid),
    #[error("flow {0} is not paused")]
    NotPaused(Uuid),
    #[error(transparent)]
    Problems(#[from] Problems),
    #[error(transparent)]
    Agent(#[from] agents::LookupError),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error("step `{step}`: {error}")]
    Step { step: String, error: tasks::Error },
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.folder.as_os_str().is_empty() {
            let fix =
                "a folder; one that does not exist means the templates that come with Dalsegno";
            checks.fail("flows.folder", "is empty", fix);
        }
    }
}

impl Flow {
    /// That it has ended, the database tells: its tasks end in many ways.
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
