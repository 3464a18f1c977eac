//! The tools that this service offers to the model in a turn.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    domain::{agents::Agent, tasks::Task},
    jobs::{Services, route::Route},
    tools::{self, Caller, Turn},
    transcript::ToolSpec,
};

/// Lists the tools. Empty if the provider gets its tools in another way, or if the model is called only once.
pub fn list_offered(
    services: &Services,
    agent: &Arc<Agent>,
    task: &Task,
    route: &Route<'_>,
) -> Vec<Arc<ToolSpec>> {
    if route.provider.holds_session() || max_rounds(services, agent) < 2 {
        return Vec::new();
    }
    // The list depends on the agent only: the turn has not begun yet.
    let (session_id, turn, job_id, lease) = (Uuid::nil(), 0, 0, 0);
    tools::list_offered(&Caller::Turn(Turn {
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

/// Limit of calls of the model in one turn.
pub fn max_rounds(services: &Services, agent: &Agent) -> u32 {
    agent.grants.max_turns.unwrap_or(services.agents.max_rounds)
}
