//! The tools that a model may call in a turn where this service carries them out.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    domain::{agents::Agent, tasks::Task},
    jobs::{Services, route::Route},
    tools::{self, Caller, Turn},
    transcript::ToolSpec,
};

/// Nothing where the provider is given its tools in another way, and where the model is called only once.
pub fn offered(
    services: &Services,
    agent: &Arc<Agent>,
    task: &Task,
    route: &Route<'_>,
) -> Vec<Arc<ToolSpec>> {
    if route.provider.holds_session() || max_rounds(services, agent) < 2 {
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
pub fn max_rounds(services: &Services, agent: &Agent) -> u32 {
    agent.grants.max_turns.unwrap_or(services.agents.max_rounds)
}
