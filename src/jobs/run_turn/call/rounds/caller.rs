//! The identity with which a turn calls tools.

use std::sync::Arc;

use crate::{
    jobs::{
        Services,
        run_turn::{begin::open_turn::OpenTurn, load::assignment::Assignment},
    },
    queue::Run,
    tools::{Caller, Tools, Turn},
};

/// Returns the tools of this turn, and their caller.
pub fn tools_and_caller(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &OpenTurn,
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
