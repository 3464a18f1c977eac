//! `GET /v1/agents`: the agents and skills of the service's files.

use std::sync::Arc;

use axum::{Json, Router, routing::get};
use serde::Serialize;

use super::{Front, Problem};
use crate::{
    app::App,
    domain::agents::{self, Agent, Skill},
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/agents", get(list))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list))]
pub(super) struct Described;

#[derive(Serialize, utoipa::ToSchema)]
struct Agents {
    items: Vec<Agent>,
    skills: Vec<Skill>,
    /// Why files, and with them their agents, are refused.
    problems: Vec<agents::Problem>,
}

/// All agents and skills, and what is wrong with their files.
#[utoipa::path(
    get,
    path = "/v1/agents",
    operation_id = "list_agents",
    tag = "agents",
    responses(
        (status = 200, body = Agents),
    ),
)]
async fn list(app: App) -> Result<Json<Agents>, Problem> {
    let problems = app.agents.problems().0;
    let catalogue = app.agents.current();
    Ok(Json(Agents {
        items: catalogue.agents().map(|agent| Agent::clone(agent)).collect(),
        skills: catalogue.skills().map(|skill: &Arc<Skill>| Skill::clone(skill)).collect(),
        problems,
    }))
}
