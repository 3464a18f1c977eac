//! Turns that would begin now: their contexts and their costs. The turn's own code drafts them; it is above the domain, so operations get it
//! as functions.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::{
    StatementError,
    agents::{LookupError, SessionMode},
    class::{self, Class, Classify, Kind},
    contexts::ProviderRequest,
    estimates::Estimate,
    flows,
    manifests::Part,
    task_files::attachments::NewAttachment,
    tasks,
};
use crate::transcript::{Message, ToolSpec};

/// The context that a turn would be sent if it began now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextPreview {
    /// Null for a preview without a task.
    pub task_id: Option<Uuid>,
    pub agent: String,
    pub instance: String,
    /// The session that the turn would continue. Null: it would open a new one.
    pub session_id: Option<Uuid>,
    /// Number of the turn.
    pub turn: i32,
    pub provider: String,
    pub model: String,
    pub estimated_tokens: i64,
    /// Reasons why the turn would be sent something else, or not at once.
    pub notes: Vec<String>,
    /// The request. Null if the model is simulated, or the request cannot be built.
    pub request: Option<ProviderRequest>,
    /// The reason why the request cannot be built.
    pub problem: Option<String>,
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    /// Each part with its source, and the reason why it would be sent or left out.
    pub parts: Vec<Part>,
}

/// The turn to preview.
#[derive(Debug, Clone)]
pub enum PreviewSubject {
    /// The next turn of a task that has not ended.
    Task(Uuid),
    /// The turn of a task that is not added.
    Agent {
        campaign_id: Uuid,
        agent: String,
        instance: String,
        prompt: Option<String>,
        node: Option<String>,
        session: Option<SessionMode>,
        attachments: Vec<NewAttachment>,
    },
}

/// Begins a transaction. A preview takes several, one after the other, and rolls all of them back.
pub type BeginTransaction = dyn Fn() -> BoxFuture<'static, Result<Transaction<'static, Postgres>, StatementError>>
    + Send
    + Sync;
type Draft<T> = dyn Fn(PreviewSubject, Arc<BeginTransaction>) -> BoxFuture<'static, Result<T, Error>>
    + Send
    + Sync;

/// Drafts previews and estimates. Cheap to clone.
#[derive(Clone)]
pub struct Previews(Arc<Drafts>);

struct Drafts {
    draft: Box<Draft<ContextPreview>>,
    estimate: Box<Draft<Estimate>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("task {0} is being cancelled, so no further turn begins")]
    BeingCancelled(Uuid),
    #[error(
        "agent `{agent}` is paused, so no turn begins: `dalsegno agent status --campaign {campaign_id}` prints the reason, `dalsegno agent resume` ends the pause"
    )]
    AgentPaused { agent: String, campaign_id: Uuid },
    #[error(
        "flow {0} is paused, so its step does not begin: `dalsegno flow resume {0}` ends the pause"
    )]
    FlowPaused(Uuid),
    #[error(
        "a turn of this conversation is running, and its answer will be part of the next context: try again after its end"
    )]
    TurnRuns,
    #[error("the turn could not begin now: {0}")]
    Refused(String),
    #[error("the service cannot be set up for a preview: {0}")]
    NotSetUp(String),
    #[error(transparent)]
    Agent(#[from] LookupError),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error("cannot draft the turn")]
    Undone(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Previews {
    pub fn new<D, E>(draft: D, estimate: E) -> Self
    where
        D: Fn(
                PreviewSubject,
                Arc<BeginTransaction>,
            ) -> BoxFuture<'static, Result<ContextPreview, Error>>
            + Send
            + Sync
            + 'static,
        E: Fn(PreviewSubject, Arc<BeginTransaction>) -> BoxFuture<'static, Result<Estimate, Error>>
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(Drafts { draft: Box::new(draft), estimate: Box::new(estimate) }))
    }

    /// Drafts the turn and its request. Changes nothing.
    pub async fn draft(
        &self,
        subject: PreviewSubject,
        begin: Arc<BeginTransaction>,
    ) -> Result<ContextPreview, Error> {
        (self.0.draft)(subject, begin).await
    }

    /// Estimates the charge of the turn. Changes nothing.
    pub async fn estimate(
        &self,
        subject: PreviewSubject,
        begin: Arc<BeginTransaction>,
    ) -> Result<Estimate, Error> {
        (self.0.estimate)(subject, begin).await
    }
}

impl fmt::Debug for Previews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Previews").finish_non_exhaustive()
    }
}

impl Error {
    pub const AGENT_PAUSED: Class = Class::of(Kind::Conflict, "agent_paused");
    pub const TURN_RUNS: Class =
        Class { retryable: true, ..Class::of(Kind::Conflict, "turn_runs") };
    pub const REFUSED: Class = Class::of(Kind::Conflict, "turn_refused");
    pub const BEING_CANCELLED: Class = Class::of(Kind::Conflict, "being_cancelled");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::BeingCancelled(_) => Self::BEING_CANCELLED,
            Self::AgentPaused { .. } => Self::AGENT_PAUSED,
            Self::FlowPaused(_) => flows::Error::PAUSED,
            Self::TurnRuns => Self::TURN_RUNS,
            Self::Refused(_) => Self::REFUSED,
            Self::NotSetUp(_) => Class::of(Kind::Internal, "internal"),
            Self::Agent(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Undone(error) => class::of_cause(error.as_ref()),
        }
    }
}
