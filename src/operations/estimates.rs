//! Estimates of turns that have not begun.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec, context_previews::rolled_back};
use crate::domain::{
    agents::{LookupError, MAIN, SessionMode},
    amount, campaigns,
    class::NUL_IN_TEXT,
    context_previews::{Error, PreviewSubject},
    estimates::Estimate,
    keys::Scope,
    sessions,
    task_files::attachments::{self, NewAttachment},
    tasks, text,
};

/// Estimates tokens and cost of a task that is not added.
///
/// Calls no model and changes nothing. The input of the first call is drafted as a turn would draft it; further calls, and the length of
/// the answer, are those of earlier turns of the agent. Compares resuming the session, a compaction before it, and a new session.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateTask {
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
    /// The node of the task: the name of a node file. By default the current node of the session.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub node: Option<String>,
    pub session: Option<SessionMode>,
    /// Files that the task is given with its prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
}

/// Estimates tokens and cost of the next turn of a session's conversation.
///
/// Calls no model and changes nothing.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EstimateSession {
    pub id: Uuid,
    /// The prompt. Without it, `…` stands for it.
    #[schema(min_length = 1)]
    pub prompt: Option<String>,
}

impl Operation for EstimateTask {
    const SPEC: Spec = Spec::change("estimate_task", "/v1/campaigns/{id}/estimate", "task add")
        .tag("tasks")
        .takes_many()
        .needs(&[Scope::Read])
        .unaudited("it changes nothing")
        .refuses(&[
            LookupError::UNKNOWN_AGENT,
            LookupError::BROKEN_AGENT,
            LookupError::UNKNOWN_NODE,
            LookupError::BROKEN_NODE,
            campaigns::Error::UNKNOWN,
            campaigns::Error::CLOSED,
            tasks::Error::BAD_INSTANCE,
            text::Error::TOO_LONG,
            text::Error::EMPTY,
            NUL_IN_TEXT,
            attachments::Error::UNKNOWN,
            attachments::Error::TOO_LARGE,
            attachments::Error::INVALID,
            amount::Refusal::CLASS,
            Error::AGENT_PAUSED,
            Error::TURN_RUNS,
            Error::REFUSED,
        ]);
    type Output = Estimate;

    async fn run(self, call: &Call) -> Result<Estimate, Refusal> {
        let Self { id: campaign_id, agent, instance, prompt, node, session, attachments } = self;
        let subject = PreviewSubject::Agent {
            campaign_id,
            agent,
            instance,
            prompt,
            node,
            session,
            attachments,
        };
        Ok(call.previews.estimate(subject, rolled_back(call).await?).await?)
    }
}

impl Operation for EstimateSession {
    const SPEC: Spec =
        Spec::change("estimate_session", "/v1/sessions/{id}/estimate", "session estimate")
            .tag("sessions")
            .needs(&[Scope::Read])
            .unaudited("it changes nothing")
            .refuses(&[
                sessions::Error::UNKNOWN,
                sessions::Error::CLOSED,
                LookupError::UNKNOWN_AGENT,
                LookupError::BROKEN_AGENT,
                campaigns::Error::CLOSED,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
                amount::Refusal::CLASS,
                Error::AGENT_PAUSED,
                Error::TURN_RUNS,
                Error::REFUSED,
            ]);
    type Output = Estimate;

    async fn run(self, call: &Call) -> Result<Estimate, Refusal> {
        let session = sessions::get(&call.pool, self.id).await?;
        if session.closed_at.is_some() || session.ephemeral {
            return Err(sessions::Error::Closed(self.id).into());
        }
        let subject = PreviewSubject::Agent {
            campaign_id: session.campaign_id,
            agent: session.agent,
            instance: session.instance,
            prompt: self.prompt,
            node: None,
            session: Some(SessionMode::Continue),
            attachments: Vec::new(),
        };
        Ok(call.previews.estimate(subject, rolled_back(call).await?).await?)
    }
}

fn main() -> String {
    MAIN.to_owned()
}
