//! `/v1/agents`.

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

#[derive(Serialize)]
struct Agents {
    items: Vec<Agent>,
    skills: Vec<Skill>,
    /// Why changed files are not in use.
    problems: Vec<agents::Problem>,
}

async fn list(app: App) -> Result<Json<Agents>, Problem> {
    let problems = app.agents.problems().unwrap_or_default().0;
    let catalogue = app.agents.current();
    Ok(Json(Agents {
        items: catalogue.agents().map(|agent| Agent::clone(agent)).collect(),
        skills: catalogue.skills().map(|skill: &Arc<Skill>| Skill::clone(skill)).collect(),
        problems,
    }))
}
