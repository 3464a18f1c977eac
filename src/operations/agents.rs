//! Control of agents while they work: statuses, pauses, resets and interruptions.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Call, Change, ChangeOutput, ChangeResult, Operation, Refusal, Spec, by_request};
use crate::domain::{
    agent_pauses::{self, Pause, PauseOutcome, PauseScope, ResumeOutcome},
    agents::{Agent, Catalogue, LookupError, Node, Problem, Provider, Skill},
    audit::Action,
    campaigns,
    class::{BAD_ARGUMENT, Class, NUL_IN_TEXT},
    conversations::{self, Reset},
    statuses::{self, AgentOverview},
    tasks::{self, InterruptMode, InterruptResult},
    text,
};

const TAG: &str = "agents";

/// Lists all agents, skills and nodes, and the problems of their files.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Agents {
    // Values, because an agent cannot be read back: of its tool servers only the names are written.
    #[schema(value_type = Vec<Agent>)]
    pub items: Vec<Value>,
    pub skills: Vec<Skill>,
    pub nodes: Vec<Node>,
    /// The provider of agents that name none.
    pub default_provider: Provider,
    /// The model of agents that name none, on the default provider. Empty: unknown.
    #[serde(default)]
    pub default_model: String,
    /// Problems of files. The agents of these files are refused.
    pub problems: Vec<Problem>,
}

/// Lists the pauses of agents: in one campaign, or in all of them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgentPauses {}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentPauses {
    pub items: Vec<Pause>,
}

/// Lists the agents of a campaign with their states and pauses.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgentStatuses {
    pub id: Uuid,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentStatuses {
    pub items: Vec<AgentOverview>,
}

/// Starts a new session with the next task of each conversation of a campaign.
///
/// Running turns go on.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetAgents {
    pub id: Uuid,
    /// True: the successors remember nothing.
    #[serde(default)]
    pub fresh: bool,
}

/// Starts a new session with the next task of each conversation of one agent.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetAgent {
    pub id: Uuid,
    pub name: String,
    /// True: the successors remember nothing.
    #[serde(default)]
    pub fresh: bool,
}

/// Stops the running turns of an agent and all its instances in a campaign, and cancels their tasks.
///
/// Its other tasks go on, unless it is paused first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InterruptAgent {
    pub id: Uuid,
    pub name: String,
    #[serde(default = "by_request")]
    pub reason: String,
    #[serde(default)]
    pub how: InterruptMode,
}

/// The cancelled tasks; empty where nothing ran.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InterruptedTasks {
    pub items: Vec<InterruptResult>,
}

/// Pauses an agent in a campaign: no turn starts until it is resumed.
///
/// Running turns go on. Its tasks wait, including new ones.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseAgent {
    pub id: Uuid,
    pub name: String,
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Pauses an agent in all campaigns: no turn starts until it is resumed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseAgentEverywhere {
    pub name: String,
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Resumes an agent in a campaign.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeAgent {
    pub id: Uuid,
    pub name: String,
}

/// Resumes an agent that was paused in all campaigns.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeAgentEverywhere {
    pub name: String,
}

const UNKNOWN: &[Class] = &[LookupError::UNKNOWN_AGENT, campaigns::Error::UNKNOWN];

impl Agents {
    pub fn of(
        catalogue: &Catalogue,
        default_provider: Provider,
        default_model: &str,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            default_provider,
            default_model: default_model.to_owned(),
            items: catalogue.agents().map(serde_json::to_value).collect::<Result<_, _>>()?,
            skills: catalogue.skills().map(|skill| Skill::clone(skill)).collect(),
            nodes: catalogue.nodes().map(|node| Node::clone(node)).collect(),
            problems: catalogue.problems().0,
        })
    }
}

impl Operation for ListAgents {
    const SPEC: Spec = Spec::read("list_agents", "/v1/agents", "agent ls").tag(TAG);
    type Output = Agents;

    async fn run(self, call: &Call) -> Result<Agents, Refusal> {
        let config = &call.config.agents;
        let agents = Agents::of(&*call.catalogue()?, config.provider.clone(), &config.model);
        agents.map_err(|error| Refusal::fault(Self::SPEC.id, &error))
    }
}

impl Operation for ListAgentPauses {
    const SPEC: Spec =
        Spec::read("list_agent_pauses", "/v1/agents/pauses", "agent status").tag(TAG);
    type Output = AgentPauses;

    async fn run(self, call: &Call) -> Result<AgentPauses, Refusal> {
        Ok(AgentPauses { items: agent_pauses::list_all(&call.pool).await? })
    }
}

impl Operation for ListAgentStatuses {
    const SPEC: Spec =
        Spec::read("list_agent_statuses", "/v1/campaigns/{id}/agents", "agent status")
            .tag(TAG)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = AgentStatuses;

    async fn run(self, call: &Call) -> Result<AgentStatuses, Refusal> {
        let catalogue = call.catalogue()?;
        let mut transaction = call.begin_read().await?;
        campaigns::get(&mut *transaction, self.id).await?;
        let items =
            statuses::list_with_pauses(&mut transaction, self.id, &catalogue, call.now).await?;
        Ok(AgentStatuses { items })
    }
}

impl Operation for ResetAgents {
    const SPEC: Spec =
        Spec::change("reset_agents", "/v1/campaigns/{id}/agents/reset", "agent reset")
            .tag(TAG)
            .audits(Action::AgentReset)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Reset;

    async fn run(self, call: &Call) -> Result<Reset, Refusal> {
        let transactions = call.begin_several().await?;
        let Self { id, fresh } = self;
        let whom = (id, None);
        Ok(conversations::reset_agents(&transactions, &call.actor, whom, fresh, call.now).await?)
    }
}

impl Operation for ResetAgent {
    const SPEC: Spec =
        Spec::change("reset_agent", "/v1/campaigns/{id}/agents/{name}/reset", "agent reset")
            .tag(TAG)
            .audits(Action::AgentReset)
            .refuses(UNKNOWN);
    type Output = Reset;

    async fn run(self, call: &Call) -> Result<Reset, Refusal> {
        call.catalogue()?.check_agent(&self.name)?;
        let transactions = call.begin_several().await?;
        let Self { id, name, fresh } = self;
        let whom = (id, Some(name.as_str()));
        Ok(conversations::reset_agents(&transactions, &call.actor, whom, fresh, call.now).await?)
    }
}

impl Change for InterruptAgent {
    const SPEC: Spec = Spec::change(
        "interrupt_agent",
        "/v1/campaigns/{id}/agents/{name}/interrupt",
        "agent interrupt",
    )
    .tag(TAG)
    .refuses(&[
        LookupError::UNKNOWN_AGENT,
        campaigns::Error::UNKNOWN,
        tasks::Error::REQUEUED,
        NUL_IN_TEXT,
        BAD_ARGUMENT,
    ]);
    const ACTION: Action = Action::AgentInterrupt;
    type Output = InterruptedTasks;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<InterruptedTasks> {
        let Self { id, name, reason, how } = self;
        call.catalogue()?.check_agent(&name)?;
        let items = tasks::interrupt_agent(conn, (id, &name), how, &reason, call.now).await?;
        let task_ids: Vec<Uuid> = items.iter().map(|one| one.task_id).collect();
        let data = json!({ "agent": name, "how": how, "reason": reason, "task_ids": task_ids });
        Ok(ChangeOutput::of(id, InterruptedTasks { items }, data))
    }
}

impl Change for PauseAgent {
    const SPEC: Spec =
        Spec::change("pause_agent", "/v1/campaigns/{id}/agents/{name}/pause", "agent pause")
            .tag(TAG)
            .refuses(&[
                LookupError::UNKNOWN_AGENT,
                campaigns::Error::UNKNOWN,
                campaigns::Error::CLOSED,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
            ]);
    const ACTION: Action = Action::AgentPause;
    type Output = PauseOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<PauseOutcome> {
        let place = PauseScope { campaign_id: Some(self.id), agent: &self.name };
        pause(place, &self.reason, conn, call).await
    }
}

impl Change for PauseAgentEverywhere {
    const SPEC: Spec =
        Spec::change("pause_agent_everywhere", "/v1/agents/{name}/pause", "agent pause")
            .tag(TAG)
            .refuses(&[
                LookupError::UNKNOWN_AGENT,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                NUL_IN_TEXT,
            ]);
    const ACTION: Action = Action::AgentPause;
    type Output = PauseOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<PauseOutcome> {
        let place = PauseScope { campaign_id: None, agent: &self.name };
        pause(place, &self.reason, conn, call).await
    }
}

impl Change for ResumeAgent {
    const SPEC: Spec =
        Spec::change("resume_agent", "/v1/campaigns/{id}/agents/{name}/resume", "agent resume")
            .tag(TAG)
            .refuses(&[agent_pauses::Error::NOT_PAUSED]);
    const ACTION: Action = Action::AgentResume;
    type Output = ResumeOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ResumeOutcome> {
        resume(PauseScope { campaign_id: Some(self.id), agent: &self.name }, conn, call).await
    }
}

impl Change for ResumeAgentEverywhere {
    const SPEC: Spec =
        Spec::change("resume_agent_everywhere", "/v1/agents/{name}/resume", "agent resume")
            .tag(TAG)
            .refuses(&[agent_pauses::Error::NOT_PAUSED]);
    const ACTION: Action = Action::AgentResume;
    type Output = ResumeOutcome;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ResumeOutcome> {
        resume(PauseScope { campaign_id: None, agent: &self.name }, conn, call).await
    }
}

async fn pause(
    place: PauseScope<'_>,
    reason: &str,
    conn: &mut PgConnection,
    call: &Call,
) -> ChangeResult<PauseOutcome> {
    // Refuses unknown names, whose pause would have no effect.
    call.catalogue()?.check_agent(place.agent)?;
    let output = agent_pauses::pause(conn, place, reason, &call.actor.label(), call.now).await?;
    if !output.changed {
        return Ok(ChangeOutput::nothing(place.subject(), output));
    }
    let data = json!({ "agent": place.agent, "reason": reason });
    Ok(ChangeOutput::of(place.subject(), output, data))
}

async fn resume(
    place: PauseScope<'_>,
    conn: &mut PgConnection,
    call: &Call,
) -> ChangeResult<ResumeOutcome> {
    let output = agent_pauses::resume(conn, place, &call.actor.label(), call.now).await?;
    Ok(ChangeOutput::of(place.subject(), output, json!({ "agent": place.agent })))
}
