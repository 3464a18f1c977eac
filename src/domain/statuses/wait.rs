//! Causes for which agents are limited.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{State, Status};
use crate::domain::{
    StatementError, budgets,
    credentials::{self, CredentialStatus},
    sessions::{self, SessionModel},
    tasks::{self, OpenTask, ProviderWait},
};

/// Open tasks of an agent that are looked at, in the order in which they run.
const MAX_TASKS: i64 = 20;

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

/// The waits with which the limited agents of a campaign are compared.
#[derive(Debug, Default)]
pub(super) struct OpenWaits {
    paused: Vec<CredentialStatus>,
    of_providers: Vec<ProviderWait>,
    /// The first open tasks of each limited agent.
    open: Vec<OpenTask>,
    models: Vec<SessionModel>,
    /// The budgets for which open tasks wait.
    budgets: HashMap<Uuid, String>,
}

impl OpenWaits {
    /// Reads the waits for all limited agents at once.
    pub(super) async fn load(
        conn: &mut PgConnection,
        campaign_id: Uuid,
        statuses: &[Status],
        now: DateTime<Utc>,
    ) -> Result<Self, StatementError> {
        let limited = || statuses.iter().filter(|status| status.state == State::Limited);
        let names: Vec<_> = limited().map(|it| (it.agent.as_str(), it.instance.as_str())).collect();
        if names.is_empty() {
            return Ok(Self::default());
        }
        let paused = credentials::list_paused(&mut *conn, now).await?;
        let of_providers = tasks::provider_waits(&mut *conn, now).await?;
        let open = tasks::open_of_conversations(&mut *conn, campaign_id, &names, MAX_TASKS).await?;
        let ids: HashSet<Uuid> = open.iter().map(|task| task.id).collect();
        let of_own = of_providers.iter().filter(|wait| ids.contains(&wait.task_id));
        let sessions = limited().filter_map(|status| status.session_id);
        let sessions: Vec<Uuid> = of_own.map(|wait| wait.session_id).chain(sessions).collect();
        let models = sessions::models_of(&mut *conn, &sessions).await?;
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let budgets = budgets::awaited_by(conn, &ids).await?;
        Ok(Self { paused, of_providers, open, models, budgets })
    }

    /// Finds the cause for which an agent is limited.
    pub(super) fn of_agent(&self, status: &Status) -> Option<AgentWait> {
        if status.state != State::Limited {
            return None;
        }
        let is_own =
            |task: &&OpenTask| task.agent == status.agent && task.instance == status.instance;
        let open: Vec<Uuid> = self.open.iter().filter(is_own).map(|task| task.id).collect();
        let of_provider = self.of_providers.iter().find(|wait| open.contains(&wait.task_id));
        let session = of_provider.map(|wait| wait.session_id).or(status.session_id);
        let model = session.and_then(|id| self.models.iter().find(|model| model.id == id));
        if let Some(credential) = model.and_then(|model| self.paused_credential(model)) {
            return Some(AgentWait::of(AgentWaitCause::Credential, Some(credential)));
        }
        // A wait without an end is for space in a limit.
        if status.until.is_none() {
            let budget = open.iter().find_map(|id| self.budgets.get(id).cloned());
            return Some(match budget {
                Some(budget) => AgentWait::of(AgentWaitCause::Budget, Some(budget)),
                None => AgentWait::of(AgentWaitCause::RateLimit, None),
            });
        }
        Some(match (of_provider, model) {
            (Some(_), Some(SessionModel { provider, model, .. })) => AgentWait {
                model: Some(model.clone()),
                ..AgentWait::of(AgentWaitCause::Provider, Some(provider.clone()))
            },
            (Some(_), None) => AgentWait::of(AgentWaitCause::Provider, None),
            (None, _) => AgentWait::of(AgentWaitCause::Other, None),
        })
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
    fn each_limited_agent_has_the_budget_for_which_its_own_task_waits() {
        let limited = |agent| Status { state: State::Limited, ..Status::idle(agent) };
        let open = |id: u128, agent: &str, instance: &str| OpenTask {
            id: Uuid::from_u128(id),
            agent: agent.to_owned(),
            instance: instance.to_owned(),
        };
        let waits = OpenWaits {
            open: vec![
                open(1, "planner", "main"),
                open(2, "writer", "2"),
                open(3, "writer", "main"),
            ],
            budgets: [(1, "day"), (2, "agent/writer")]
                .map(|(id, budget)| (Uuid::from_u128(id), budget.to_owned()))
                .into(),
            ..OpenWaits::default()
        };
        let of = |status: &Status| waits.of_agent(status).map(|wait| (wait.cause, wait.subject));
        let second = Status { instance: "2".to_owned(), ..limited("writer") };
        let budget = |name: &str| Some((AgentWaitCause::Budget, Some(name.to_owned())));
        assert_eq!(of(&limited("planner")), budget("day"));
        assert_eq!(of(&second), budget("agent/writer"));
        assert_eq!(of(&limited("writer")), Some((AgentWaitCause::RateLimit, None)));
        assert_eq!(of(&Status::idle("planner")), None);
    }

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
