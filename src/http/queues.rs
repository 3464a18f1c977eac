//! `/v1/queues`, and the pauses of groups.

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde::Serialize;
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Name},
    tasks::{Nothing, Reasoned},
    transaction::{begin, commit},
};
use crate::{
    app::App,
    domain::audit::{self, Action, Actor},
    queue::admin::{self, PauseScope, QueueView},
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/queues", get(list))
        .route("/v1/queues/{name}", get(show))
        .route("/v1/queues/{name}/pause", post(pause))
        .route("/v1/queues/{name}/resume", post(resume))
        .route("/v1/groups/{name}/pause", post(pause_group))
        .route("/v1/groups/{name}/resume", post(resume_group))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, show, pause, resume, pause_group, resume_group))]
pub(super) struct Described;

/// There are a handful: all of them are one page.
#[derive(Serialize, utoipa::ToSchema)]
struct Queues {
    items: Vec<QueueView>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Paused {
    paused: String,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Resumed {
    resumed: String,
    was_paused: bool,
}

/// Lists the queues with their counters.
#[utoipa::path(
    get,
    path = "/v1/queues",
    operation_id = "list_queues",
    tag = "queue",
    responses((status = 200, body = Queues)),
)]
async fn list(app: App) -> Result<Json<Queues>, Problem> {
    Ok(Json(Queues { items: admin::list_queues(&app.pool).await? }))
}

/// Shows one queue: one that has had a job, has a worker, or is paused.
#[utoipa::path(
    get,
    path = "/v1/queues/{name}",
    operation_id = "show_queue",
    tag = "queue",
    params(("name" = String, Path)),
    responses((status = 200, body = QueueView), (status = 404, description = "`unknown_queue`")),
)]
async fn show(app: App, Name(name): Name) -> Result<Json<QueueView>, Problem> {
    Ok(Json(admin::find_queue(&app.pool, &name).await?))
}

/// Claims nothing more from a queue until it is resumed. What runs goes on.
#[utoipa::path(
    post,
    path = "/v1/queues/{name}/pause",
    operation_id = "pause_queue",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = Paused),
        (status = 422, description = "`bad_argument`, `bad_value`"),
    ),
)]
async fn pause(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Paused>, Problem> {
    pause_in(PauseScope::Queue, &app, &who, name, &reason).await
}

/// Ends the pause of a queue.
#[utoipa::path(
    post,
    path = "/v1/queues/{name}/resume",
    operation_id = "resume_queue",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Resumed),
        (status = 422, description = "`bad_argument`, `bad_value`"),
    ),
)]
async fn resume(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Resumed>, Problem> {
    resume_in(PauseScope::Queue, &app, &who, name).await
}

/// Claims no more jobs of a group until it is resumed. The tasks of a campaign are a group with its id as the name.
#[utoipa::path(
    post,
    path = "/v1/groups/{name}/pause",
    operation_id = "pause_group",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = Paused),
        (status = 422, description = "`bad_argument`, `bad_value`"),
    ),
)]
async fn pause_group(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Paused>, Problem> {
    pause_in(PauseScope::Group, &app, &who, name, &reason).await
}

/// Ends the pause of a group.
#[utoipa::path(
    post,
    path = "/v1/groups/{name}/resume",
    operation_id = "resume_group",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Resumed),
        (status = 422, description = "`bad_argument`, `bad_value`"),
    ),
)]
async fn resume_group(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Resumed>, Problem> {
    resume_in(PauseScope::Group, &app, &who, name).await
}

async fn pause_in(
    scope: PauseScope,
    app: &App,
    who: &Actor,
    name: String,
    reason: &str,
) -> Result<Json<Paused>, Problem> {
    let action = match scope {
        PauseScope::Queue => Action::QueuePause,
        PauseScope::Group => Action::GroupPause,
    };
    let (mut tx, now) = (begin(app).await?, app.clock.now());
    admin::pause(&mut *tx, scope, &name, reason).await?;
    audit::write(&mut *tx, who, action, &name, json!({ "reason": reason }), now).await?;
    commit(tx).await?;
    Ok(Json(Paused { paused: name }))
}

async fn resume_in(
    scope: PauseScope,
    app: &App,
    who: &Actor,
    name: String,
) -> Result<Json<Resumed>, Problem> {
    let action = match scope {
        PauseScope::Queue => Action::QueueResume,
        PauseScope::Group => Action::GroupResume,
    };
    let (mut tx, now) = (begin(app).await?, app.clock.now());
    let was_paused = admin::resume(&mut *tx, scope, &name).await?;
    audit::write(&mut *tx, who, action, &name, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(Resumed { resumed: name, was_paused }))
}
