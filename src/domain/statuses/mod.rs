//! Statuses of the agents of a campaign.
//!
//! The SQL function `dalsegno.agent_statuses` defines them, over the rows of tasks, jobs, sessions and paused credentials. Processes keep
//! none of it in memory, so a crash cannot leave an agent `working`.

mod overview;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::overview::{AgentOverview, list_with_pauses};
use super::{
    StatementError,
    agents::{Catalogue, MAIN},
};

/// Status of an agent or of one of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentStatus)]
pub struct Status {
    pub agent: String,
    pub instance: String,
    pub state: State,
    /// The running task.
    pub task_id: Option<Uuid>,
    /// The open session of its conversation.
    pub session_id: Option<Uuid>,
    /// Number of waiting tasks, without those scheduled for later.
    pub waiting: i64,
    /// Expected end of the limit, if the agent is limited and the end is known.
    pub until: Option<DateTime<Utc>>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = AgentState)]
pub enum State {
    Idle,
    Working,
    /// Its last turn failed, and it has no more tasks.
    Error,
    /// It has tasks, and none of them runs.
    Waiting,
    /// Its credential is paused, or its next task was postponed because a limit is used up.
    Limited,
}

impl Status {
    /// Returns the name that others use: `curator`, and `curator_2` for the instance `2`.
    pub fn name(&self, catalogue: &Catalogue) -> String {
        catalogue.format_name(&self.agent, &self.instance)
    }

    fn idle(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            instance: MAIN.to_owned(),
            state: State::Idle,
            task_id: None,
            session_id: None,
            waiting: 0,
            until: None,
        }
    }
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Error => "error",
            Self::Waiting => "waiting",
            Self::Limited => "limited",
        }
    }
}

/// Lists the statuses in a campaign by name: every agent with a file, and every instance with a conversation or a task there. Agents
/// without a file are left out.
pub async fn of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    catalogue: &Catalogue,
    now: DateTime<Utc>,
) -> Result<Vec<Status>, StatementError> {
    let found = sqlx::query_as!(
        Status,
        r#"select agent as "agent!", instance as "instance!", state as "state!: State", task_id as "task_id?", session_id as "session_id?",
                  waiting as "waiting!", until as "until?"
             from dalsegno.agent_statuses($1, $2)"#,
        campaign_id,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the statuses of the agents of a campaign"))?;
    let key =
        |status: &Status| (status.agent.clone(), status.instance != MAIN, status.instance.clone());
    let names = catalogue.agents().map(|agent| agent.name.as_str());
    let idle = names.chain(catalogue.broken_agents()).map(Status::idle);
    let known = found.into_iter().filter(|status| catalogue.has_agent(&status.agent));
    // Statuses from the database replace the idle defaults.
    let by_key: BTreeMap<_, Status> =
        idle.chain(known).map(|status| (key(&status), status)).collect();
    Ok(by_key.into_values().collect())
}
