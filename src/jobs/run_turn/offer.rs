//! What the model may call in a turn whose tools this service carries out, and who calls.

use std::sync::Arc;

use uuid::Uuid;

use super::{assignment::Assignment, begin::Opened};
use crate::{
    domain::{agents::Agent, tasks::Task},
    jobs::{Services, route::Route},
    queue::Run,
    tools::{self, Caller, Tools, Turn},
    transcript::ToolSpec,
};

/// Nothing where the provider is given its tools in another way, and where the model is called only once.
pub(super) fn tools(
    services: &Services,
    agent: &Arc<Agent>,
    task: &Task,
    route: &Route<'_>,
) -> Vec<Arc<ToolSpec>> {
    if route.keeps_conversation || max_rounds(services, agent) < 2 {
        return Vec::new();
    }
    // It goes by the agent alone: there is no turn yet.
    let (session_id, turn, job_id, lease) = (Uuid::nil(), 0, 0, 0);
    tools::offered(&Caller::Turn(Turn {
        campaign_id: task.campaign_id,
        agent: Arc::clone(agent),
        instance: task.instance.clone(),
        session_id,
        task_id: task.id,
        turn,
        job_id,
        lease,
    }))
}

/// Calls of the model in one turn.
pub(super) fn max_rounds(services: &Services, agent: &Agent) -> u32 {
    agent.grants.max_turns.unwrap_or(services.agents.max_rounds)
}

/// What the tools of this turn work with, and who they are called by.
pub(super) fn to_turn(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &Opened,
) -> (Tools, Caller) {
    let Assignment { task, agent, .. } = assignment;
    let caller = Turn {
        campaign_id: task.campaign_id,
        agent: Arc::clone(agent),
        instance: task.instance.clone(),
        session_id: opened.begun.session_id,
        task_id: task.id,
        turn: opened.begun.turn,
        job_id: run.job_id(),
        lease: run.lease(),
    };
    let tools = Tools { pool: run.pool().clone(), settings: Arc::clone(&services.tools) };
    (tools, Caller::Turn(caller))
}
