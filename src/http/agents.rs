//! `/v1/agents`, and `/v1/campaigns/{id}/agents`.

use std::sync::Arc;

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Id, IdAndName, Name},
    sessions::Interruption,
    tasks::{Nothing, Reasoned},
    transaction::{begin, begin_read, begin_several, commit},
};
use crate::{
    app::App,
    domain::{
        agent_pauses::{self, Pause, Paused, Place, Resumed},
        agents::{self, Agent, Skill},
        audit::{self, Action, Actor},
        campaigns, conversations,
        conversations::Reset,
        statuses::{self, Standing},
        tasks::{self, Interrupted},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/agents", get(list))
        .route("/v1/agents/pauses", get(pauses))
        .route("/v1/agents/{name}/pause", post(pause_everywhere))
        .route("/v1/agents/{name}/resume", post(resume_everywhere))
        .route("/v1/campaigns/{id}/agents", get(standing))
        .route("/v1/campaigns/{id}/agents/reset", post(reset_all))
        .route("/v1/campaigns/{id}/agents/{name}/reset", post(reset))
        .route("/v1/campaigns/{id}/agents/{name}/interrupt", post(interrupt))
        .route("/v1/campaigns/{id}/agents/{name}/pause", post(pause))
        .route("/v1/campaigns/{id}/agents/{name}/resume", post(resume))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    list,
    pauses,
    pause_everywhere,
    resume_everywhere,
    standing,
    reset_all,
    reset,
    interrupt,
    pause,
    resume
))]
pub(super) struct Described;

#[derive(Serialize, utoipa::ToSchema)]
struct Agents {
    items: Vec<Agent>,
    skills: Vec<Skill>,
    /// Why files, and with them their agents, are refused.
    problems: Vec<agents::Problem>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Standings {
    items: Vec<Standing>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct AgentPauses {
    items: Vec<Pause>,
}

/// What was stopped; empty where nothing ran.
#[derive(Serialize, utoipa::ToSchema)]
struct AgentInterrupted {
    items: Vec<Interrupted>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResetOfAgents)]
struct HowReset {
    /// Whether the successors remember nothing.
    #[serde(default)]
    fresh: bool,
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

/// The agents that are paused in all campaigns.
#[utoipa::path(
    get,
    path = "/v1/agents/pauses",
    operation_id = "list_agent_pauses",
    tag = "agents",
    responses((status = 200, body = AgentPauses)),
)]
async fn pauses(app: App) -> Result<Json<AgentPauses>, Problem> {
    Ok(Json(AgentPauses { items: agent_pauses::list_open(&app.pool, None).await? }))
}

/// What each agent of a campaign does at this moment, and whether it is paused.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/agents",
    operation_id = "list_agent_statuses",
    tag = "agents",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Standings),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn standing(app: App, Id(id): Id) -> Result<Json<Standings>, Problem> {
    let mut tx = begin_read(&app).await?;
    campaigns::get(&mut *tx, id).await?;
    let catalogue = app.agents.current();
    let items = statuses::standings(&mut tx, id, &catalogue, app.clock.now()).await?;
    Ok(Json(Standings { items }))
}

/// Has the next task of each conversation of a campaign begin a new session.
///
/// What runs is not disturbed.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/agents/reset",
    operation_id = "reset_agents",
    tag = "agents",
    params(("id" = Uuid, Path)),
    request_body = HowReset,
    responses(
        (status = 200, body = Reset),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn reset_all(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(HowReset { fresh }): Body<HowReset>,
) -> Result<Json<Reset>, Problem> {
    let (transactions, now) = (begin_several(&app).await?, app.clock.now());
    Ok(Json(conversations::reset_agents(&transactions, &who, (id, None), fresh, now).await?))
}

/// The same for the conversations of one agent.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/agents/{name}/reset",
    operation_id = "reset_agent",
    tag = "agents",
    params(("id" = Uuid, Path), ("name" = String, Path)),
    request_body = HowReset,
    responses(
        (status = 200, body = Reset),
        (status = 404, description = "`unknown_agent`, `unknown_campaign`"),
    ),
)]
async fn reset(
    app: App,
    who: Actor,
    IdAndName(id, name): IdAndName,
    Body(HowReset { fresh }): Body<HowReset>,
) -> Result<Json<Reset>, Problem> {
    app.agents.current().check_name(&name)?;
    let (transactions, now) = (begin_several(&app).await?, app.clock.now());
    Ok(Json(conversations::reset_agents(&transactions, &who, (id, Some(&name)), fresh, now).await?))
}

/// Cancels the tasks of an agent whose turns run in a campaign at this moment, with all its instances.
///
/// Its other tasks go on: whoever does not want that pauses it first.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/agents/{name}/interrupt",
    operation_id = "interrupt_agent",
    tag = "agents",
    params(("id" = Uuid, Path), ("name" = String, Path)),
    request_body = Interruption,
    responses(
        (status = 200, body = AgentInterrupted),
        (status = 404, description = "`unknown_agent`, `unknown_campaign`"),
        (status = 409, description = "`task_requeued`"),
        (status = 422, description = "`nul_in_text`, `bad_argument`"),
    ),
)]
async fn interrupt(
    app: App,
    who: Actor,
    IdAndName(id, name): IdAndName,
    Body(Interruption { reason, how }): Body<Interruption>,
) -> Result<Json<AgentInterrupted>, Problem> {
    app.agents.current().check_name(&name)?;
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let items = tasks::interrupt_agent(&mut tx, (id, &name), how, &reason, now).await?;
    let task_ids: Vec<_> = items.iter().map(|one| one.task_id).collect();
    let data = json!({ "agent": name, "how": how, "reason": reason, "task_ids": task_ids });
    audit::write(&mut *tx, &who, Action::AgentInterrupt, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(AgentInterrupted { items }))
}

/// Has an agent begin no more turns in a campaign.
///
/// What runs ends, and its tasks wait, those that come in later too.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/agents/{name}/pause",
    operation_id = "pause_agent",
    tag = "agents",
    params(("id" = Uuid, Path), ("name" = String, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = Paused),
        (status = 404, description = "`unknown_agent`, `unknown_campaign`"),
        (status = 409, description = "`campaign_closed`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_text`, `nul_in_text`"),
    ),
)]
async fn pause(
    app: App,
    who: Actor,
    IdAndName(id, name): IdAndName,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Paused>, Problem> {
    begin_pause(&app, &who, Place { campaign_id: Some(id), agent: &name }, &reason).await
}

/// Has an agent begin no more turns anywhere.
#[utoipa::path(
    post,
    path = "/v1/agents/{name}/pause",
    operation_id = "pause_agent_everywhere",
    tag = "agents",
    params(("name" = String, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = Paused),
        (status = 404, description = "`unknown_agent`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_text`, `nul_in_text`"),
    ),
)]
async fn pause_everywhere(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Paused>, Problem> {
    begin_pause(&app, &who, Place { campaign_id: None, agent: &name }, &reason).await
}

/// Lets an agent go on in a campaign.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/agents/{name}/resume",
    operation_id = "resume_agent",
    tag = "agents",
    params(("id" = Uuid, Path), ("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Resumed),
        (status = 409, description = "`agent_not_paused`"),
    ),
)]
async fn resume(
    app: App,
    who: Actor,
    IdAndName(id, name): IdAndName,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Resumed>, Problem> {
    end_pause(&app, &who, Place { campaign_id: Some(id), agent: &name }).await
}

/// Lets an agent go on that was paused in all campaigns.
#[utoipa::path(
    post,
    path = "/v1/agents/{name}/resume",
    operation_id = "resume_agent_everywhere",
    tag = "agents",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Resumed),
        (status = 409, description = "`agent_not_paused`"),
    ),
)]
async fn resume_everywhere(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Resumed>, Problem> {
    end_pause(&app, &who, Place { campaign_id: None, agent: &name }).await
}

async fn begin_pause(
    app: &App,
    who: &Actor,
    place: Place<'_>,
    reason: &str,
) -> Result<Json<Paused>, Problem> {
    // A name that nobody has would be a pause that nobody notices.
    app.agents.current().check_name(place.agent)?;
    let (mut tx, now) = (begin(app).await?, app.clock.now());
    let paused = agent_pauses::pause(&mut tx, place, reason, &who.label(), now).await?;
    if paused.changed {
        let data = json!({ "agent": place.agent, "reason": reason });
        audit::write(&mut *tx, who, Action::AgentPause, place.subject(), data, now).await?;
    }
    commit(tx).await?;
    Ok(Json(paused))
}

async fn end_pause(app: &App, who: &Actor, place: Place<'_>) -> Result<Json<Resumed>, Problem> {
    let (mut tx, now) = (begin(app).await?, app.clock.now());
    let resumed = agent_pauses::resume(&mut tx, place, &who.label(), now).await?;
    let data = json!({ "agent": place.agent });
    audit::write(&mut *tx, who, Action::AgentResume, place.subject(), data, now).await?;
    commit(tx).await?;
    Ok(Json(resumed))
}
