//! Causes for which agents are limited.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{State, Status};
use crate::domain::{
    StatementError, budgets,
    credentials::{self, CredentialStatus},
    sessions::{self, SessionModel},
    tasks::{self, ProviderWait},
};

/// Open tasks of an agent that are looked at, in the order in which they run.
const MAX_TASKS: usize = 20;

/// The cause for which an agent is limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentWait {
    pub cause: AgentWaitCause,
    /// Name of the credential or the provider; of a budget, its owner and key: `agent/writer`, `campaign/` and an id, `day`.
    pub subject: Option<String>,
    /// The model, if its provider is waited for.
    #[serde(default)]
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentWaitCause {
    /// The credential of its session is paused.
    Credential,
    /// Its provider refuses calls or cannot be reached.
    Provider,
    Budget,
    RateLimit,
    /// Its last run was put off for another reason.
    Other,
}

/// The waits that all agents of a campaign are compared with.
pub(super) struct OpenWaits {
    paused: Vec<CredentialStatus>,
    of_providers: Vec<ProviderWait>,
}

impl OpenWaits {
    /// Reads them if any of these agents is limited.
    pub(super) async fn load(
        conn: &mut PgConnection,
        statuses: &[Status],
        now: DateTime<Utc>,
    ) -> Result<Self, StatementError> {
        if !statuses.iter().any(|status| status.state == State::Limited) {
            return Ok(Self { paused: Vec::new(), of_providers: Vec::new() });
        }
        let paused = credentials::list_paused(&mut *conn, now).await?;
        Ok(Self { paused, of_providers: tasks::provider_waits(conn, now).await? })
    }

    /// Finds the cause for which an agent is limited.
    pub(super) async fn of_agent(
        &self,
        conn: &mut PgConnection,
        campaign_id: Uuid,
        status: &Status,
    ) -> Result<Option<AgentWait>, StatementError> {
        if status.state != State::Limited {
            return Ok(None);
        }
        let Status { agent, instance, .. } = status;
        let mut open =
            tasks::open_of_conversation(&mut *conn, campaign_id, agent, instance).await?;
        open.truncate(MAX_TASKS);
        let of_provider = self.of_providers.iter().find(|wait| open.contains(&wait.task_id));
        let session = of_provider.map(|wait| wait.session_id).or(status.session_id);
        let model = match session {
            Some(id) => sessions::models_of(&mut *conn, &[id]).await?.pop(),
            None => None,
        };
        if let Some(credential) = model.as_ref().and_then(|model| self.paused_credential(model)) {
            return Ok(Some(AgentWait::of(AgentWaitCause::Credential, Some(credential))));
        }
        // A wait without an end is for space in a limit.
        if status.until.is_none() {
            let awaited = budgets::awaited_by(&mut *conn, &open).await?;
            let budget = open.iter().find_map(|id| awaited.get(id).cloned());
            return Ok(Some(match budget {
                Some(budget) => AgentWait::of(AgentWaitCause::Budget, Some(budget)),
                None => AgentWait::of(AgentWaitCause::RateLimit, None),
            }));
        }
        Ok(Some(match (of_provider, model) {
            (Some(_), Some(SessionModel { provider, model, .. })) => AgentWait {
                model: Some(model),
                ..AgentWait::of(AgentWaitCause::Provider, Some(provider))
            },
            (Some(_), None) => AgentWait::of(AgentWaitCause::Provider, None),
            (None, _) => AgentWait::of(AgentWaitCause::Other, None),
        }))
    }

    fn paused_credential(&self, model: &SessionModel) -> Option<String> {
        let is_own = |one: &&CredentialStatus| {
            one.provider == model.provider && Some(&one.name) == model.credential.as_ref()
        };
        self.paused.iter().find(is_own).map(|one| one.name.clone())
    }
}

impl AgentWait {
    fn of(cause: AgentWaitCause, subject: Option<String>) -> Self {
        Self { cause, subject, model: None }
    }

    /// Names the wait in the place of a state: `waits for ollama`.
    pub fn state_word(&self) -> String {
        match (self.cause, &self.subject) {
            (AgentWaitCause::Provider, Some(provider)) => format!("waits for {provider}"),
            (AgentWaitCause::Provider, None) => "waits for its provider".to_owned(),
            (AgentWaitCause::Other, _) => "put off".to_owned(),
            (
                AgentWaitCause::Credential | AgentWaitCause::Budget | AgentWaitCause::RateLimit,
                _,
            ) => "at a limit".to_owned(),
        }
    }

    /// Describes the cause.
    pub fn because(&self) -> String {
        let subject = self.subject.as_deref().unwrap_or_default();
        match self.cause {
            AgentWaitCause::Credential => format!("its credential `{subject}` is paused"),
            AgentWaitCause::Provider => {
                let model = self.model.as_ref().map(|model| format!(" ({model})"));
                format!(
                    "its provider {subject}{} refuses calls or cannot be reached, and is tried again by itself",
                    model.unwrap_or_default()
                )
            }
            AgentWaitCause::Budget => format!("the budget {subject} has no space for its call"),
            AgentWaitCause::RateLimit => "a rate limit has no space for its call".to_owned(),
            AgentWaitCause::Other => {
                "its last run was put off; `dalsegno task explain ID` says why".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_is_waited_for_is_no_limit() {
        let deadbox = Some("deadbox".to_owned());
        let wait = AgentWait {
            model: Some("m1".to_owned()),
            ..AgentWait::of(AgentWaitCause::Provider, deadbox)
        };
        assert_eq!(wait.state_word(), "waits for deadbox");
        assert!(wait.because().starts_with("its provider deadbox (m1) refuses"), "{wait:?}");
        let budget = AgentWait::of(AgentWaitCause::Budget, Some("agent/writer".to_owned()));
        assert_eq!(budget.state_word(), "at a limit");
        assert_eq!(budget.because(), "the budget agent/writer has no space for its call");
    }
}
