//! Statuses of the agents of a campaign.
//!
//! The SQL function `dalsegno.agent_statuses` defines them, over the rows of tasks, jobs, sessions and paused credentials. Processes keep
//! none of it in memory, so a crash cannot leave an agent `working`.

mod overview;
mod wait;

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::{
    overview::{AgentOverview, list_with_pauses},
    wait::{AgentWait, AgentWaitCause},
};
use super::{
    StatementError,
    agents::{Catalogue, MAIN, OWN_SERVER},
};

/// The year of `dalsegno.never()`: a wait until then has no end.
const NEVER: i32 = 9999;
/// Longest name of a tool in a status.
const TOOL_MAX_CHARS: usize = 64;

/// Status of an agent or of one of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentStatus)]
pub struct Status {
    pub agent: String,
    pub instance: String,
    pub state: State,
    /// The running task.
    pub task_id: Option<Uuid>,
    /// The tool that its turn is calling.
    #[serde(default)]
    pub tool: Option<String>,
    /// Start of that call.
    #[serde(default)]
    pub tool_since: Option<DateTime<Utc>>,
    /// The open session of its conversation.
    pub session_id: Option<Uuid>,
    /// Number of waiting tasks, without those scheduled for later.
    pub waiting: i64,
    /// Expected end of the limit, if the agent is limited and the end is known.
    pub until: Option<DateTime<Utc>>,
    /// Number of tasks that are scheduled for later.
    #[serde(default)]
    pub later: i64,
    /// The time of the first of them.
    #[serde(default)]
    pub later_at: Option<DateTime<Utc>>,
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
    /// It has tasks, and none of them runs. Its provider may have the call of one as a batch.
    Waiting,
    /// Its credential is paused, or its next task waits for a limit or its provider.
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
            tool: None,
            tool_since: None,
            session_id: None,
            waiting: 0,
            until: None,
            later: 0,
            later_at: None,
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
        r#"select s.agent as "agent!", s.instance as "instance!", s.state as "state!: State", s.task_id as "task_id?",
                  r.tool as "tool?", r.since as "tool_since?", s.session_id as "session_id?", s.waiting as "waiting!", s.until as "until?",
                  s.later as "later!", s.later_at as "later_at?"
             from dalsegno.agent_statuses($1, $2) as s left join lateral dalsegno.running_tool(s.task_id) as r on true"#,
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
    let end = |until: &DateTime<Utc>| until.year() < NEVER;
    let known = known.map(|it| Status {
        tool: it.tool.as_deref().map(tool_name),
        until: it.until.filter(end),
        ..it
    });
    // Statuses from the database replace the idle defaults.
    let by_key: BTreeMap<_, Status> =
        idle.chain(known).map(|status| (key(&status), status)).collect();
    Ok(by_key.into_values().collect())
}

/// A tool that a turn is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTool {
    pub name: String,
    pub since: DateTime<Utc>,
}

/// Finds the tool that the running turn of a task is calling.
pub async fn running_tool(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<RunningTool>, StatementError> {
    let found = sqlx::query!(
        r#"select tool as "tool!", since as "since!" from dalsegno.running_tool($1)"#,
        task_id,
    );
    let found = found.map(|row| RunningTool { name: tool_name(&row.tool), since: row.since });
    found.fetch_optional(executor).await.map_err(StatementError::to("read the tool of a turn"))
}

/// Returns the name of a tool as people and models know it: `edicts_read` for `mcp__dalsegno__edicts_read`. Models make names up, so
/// unusual characters are replaced.
pub fn tool_name(called: &str) -> String {
    let own = called.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(OWN_SERVER));
    let name = own.and_then(|rest| rest.strip_prefix("__")).unwrap_or(called);
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    name.chars().take(TOOL_MAX_CHARS).map(|c| if is_usual(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_without_their_server_and_without_odd_characters() {
        assert_eq!(tool_name("mcp__dalsegno__edicts_read"), "edicts_read");
        assert_eq!(tool_name("mcp__board__post"), "mcp__board__post");
        assert_eq!(tool_name("Bash"), "Bash");
        assert_eq!(tool_name("a<b>\u{202e}\n"), "a?b???");
        assert_eq!(tool_name(&"x".repeat(200)).len(), TOOL_MAX_CHARS);
    }
}
