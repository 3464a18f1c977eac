//! Contexts that would be sent now.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
use crate::domain::{
    agents::{LookupError, MAIN},
    amount, campaigns,
    class::NUL_IN_TEXT,
    context_previews::{BeginTransaction, ContextPreview, Error, PreviewSubject},
    flows,
    keys::Scope,
    tasks, text,
    transaction::Transactions as _,
};

const TAG: &str = "sessions";

/// Shows what the next turn of a task would be sent now: its texts, and the request byte for byte.
///
/// Nothing is sent and nothing changes.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewTaskContext {
    pub id: Uuid,
}

/// Shows what an agent would be sent now for a prompt, without a task.
///
/// Nothing is sent and nothing changes.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewAgentContext {
    /// The campaign
    pub id: Uuid,
    /// The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})?$")]
    pub agent: String,
    #[serde(default = "main")]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub instance: String,
    /// The prompt. Without it, `…` stands for it.
    #[schema(min_length = 1)]
    pub prompt: Option<String>,
}

impl Operation for PreviewTaskContext {
    const SPEC: Spec =
        Spec::read("preview_task_context", "/v1/tasks/{id}/context/preview", "context preview")
            .tag(TAG)
            .refuses(&[
                tasks::Error::UNKNOWN,
                tasks::Error::ENDED,
                Error::AGENT_PAUSED,
                flows::Error::PAUSED,
                Error::BEING_CANCELLED,
                Error::TURN_RUNS,
                Error::REFUSED,
            ]);
    type Output = ContextPreview;

    async fn run(self, call: &Call) -> Result<ContextPreview, Refusal> {
        draft(PreviewSubject::Task(self.id), call).await
    }
}

impl Operation for PreviewAgentContext {
    const SPEC: Spec = Spec::change(
        "preview_agent_context",
        "/v1/campaigns/{id}/context/preview",
        "context preview",
    )
    .tag(TAG)
    .needs(&[Scope::Read])
    .unaudited("it changes nothing")
    .refuses(&[
        LookupError::UNKNOWN_AGENT,
        LookupError::BROKEN_AGENT,
        campaigns::Error::UNKNOWN,
        campaigns::Error::CLOSED,
        tasks::Error::BAD_INSTANCE,
        text::Error::TOO_LONG,
        text::Error::EMPTY,
        NUL_IN_TEXT,
        amount::Refusal::CLASS,
        Error::AGENT_PAUSED,
        Error::TURN_RUNS,
        Error::REFUSED,
    ]);
    type Output = ContextPreview;

    async fn run(self, call: &Call) -> Result<ContextPreview, Refusal> {
        let Self { id: campaign_id, agent, instance, prompt } = self;
        let subject = PreviewSubject::Agent {
            campaign_id,
            agent,
            instance,
            prompt,
            node: None,
            session: None,
            attachments: Vec::new(),
        };
        draft(subject, call).await
    }
}

async fn draft(subject: PreviewSubject, call: &Call) -> Result<ContextPreview, Refusal> {
    Ok(call.previews.draft(subject, rolled_back(call).await?).await?)
}

/// Returns a source of transactions, all of which a preview rolls back.
pub(super) async fn rolled_back(call: &Call) -> Result<Arc<BeginTransaction>, Refusal> {
    let transactions = Arc::new(call.begin_several().await?);
    Ok(Arc::new(move || {
        let transactions = Arc::clone(&transactions);
        Box::pin(async move { transactions.begin().await })
    }))
}

fn main() -> String {
    MAIN.to_owned()
}
