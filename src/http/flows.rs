//! `/v1/workflows`, the templates, and `/v1/flows`, what was made from them.

use axum::{
    Extension, Json, Router,
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    admission::Admission,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    reach::Reach,
    tasks::{Nothing, Reasoned},
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        flows::{
            self, BrokenTemplate, CancelledFlow, Flow, Inputs, Shown, State, Template, Templates,
        },
    },
};

pub(super) fn routes(admission: Admission) -> Router<Front> {
    Router::new()
        .route("/v1/workflows", get(templates))
        .route("/v1/campaigns/{id}/flows", post(start))
        .route("/v1/flows", get(list))
        .route("/v1/flows/{id}", get(show))
        .route("/v1/flows/{id}/pause", post(pause))
        .route("/v1/flows/{id}/resume", post(resume))
        .route("/v1/flows/{id}/retry", post(retry))
        .route("/v1/flows/{id}/cancel", post(cancel))
        .layer(Extension(admission))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(templates, start, list, show, pause, resume, retry, cancel))]
pub(super) struct Described;

/// There are a handful: all of them are one page.
#[derive(Serialize, utoipa::ToSchema)]
struct AllTemplates {
    items: Vec<Template>,
    /// Those that cannot be started, and why.
    broken: Vec<BrokenTemplate>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFlow, example = json!({ "template": "reviewed-text", "inputs": { "task": "Write about the harbour." } }))]
struct Started {
    template: String,
    /// Texts, and lists of texts for the inputs that are lists.
    #[serde(default)]
    inputs: Inputs,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    campaign_id: Option<Uuid>,
    #[param(inline)]
    state: Option<State>,
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowRetry)]
struct From {
    /// The step to go on from.
    from: String,
}

/// Lists the templates of flows with their inputs and steps.
#[utoipa::path(
    get,
    path = "/v1/workflows",
    operation_id = "list_workflows",
    tag = "flows",
    responses(
        (status = 200, body = AllTemplates),
        (status = 409, description = "`bad_templates`"),
    ),
)]
async fn templates(app: App) -> Result<Json<AllTemplates>, Problem> {
    let templates = load(&app).await?;
    Ok(Json(AllTemplates {
        items: templates.all().cloned().collect(),
        broken: templates.broken().cloned().collect(),
    }))
}

/// Starts a flow: all its tasks are added, each waiting for those of the steps before it.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/flows",
    operation_id = "start_flow",
    tag = "flows",
    params(("id" = Uuid, Path, description = "The campaign")),
    request_body = Started,
    responses(
        (status = 201, body = Flow, headers(("Location" = String, description = "Where the flow is"))),
        (status = 404, description = "`unknown_campaign`, `unknown_template`, `unknown_agent`"),
        (status = 409, description = "`campaign_closed`, `budget_exceeded`, `bad_templates`, `broken_agent`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`bad_inputs`, `too_many_tasks_in_flow`, `empty_text`, `bad_value`"),
        (status = 503, description = "`queue_full`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn start(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    Extension(admission): Extension<Admission>,
    Body(asked): Body<Started>,
) -> Result<Response, Problem> {
    let (catalogue, added_by, now) = (app.agents.current(), who.label(), app.clock.now());
    let templates = load(&app).await?;
    let new = flows::New {
        campaign_id,
        template: templates.get(&asked.template)?,
        inputs: &asked.inputs,
        added_by: Some(&added_by),
        parent_id: None,
    };
    let n_tasks = flows::n_tasks(new.template, new.inputs)? as u64;
    let room = admission.admit(&app, n_tasks).await?;
    let mut tx = begin(&app).await?;
    let flow = flows::start(&mut tx, &app.config.tasks, &catalogue, &new, now).await?;
    let data = json!({ "template": flow.template, "campaign_id": campaign_id });
    audit::write(&mut *tx, &who, Action::FlowStart, flow.id, data, now).await?;
    commit(tx).await?;
    room.used(n_tasks);
    let location = format!("/v1/flows/{}", flow.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(flow)).into_response())
}

/// Lists flows, the newest first.
#[utoipa::path(
    get,
    path = "/v1/flows",
    operation_id = "list_flows",
    tag = "flows",
    params(Listed),
    responses((status = 200, body = Listing<Flow>)),
)]
async fn list(
    app: App,
    reach: Reach,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Flow>>, Problem> {
    let (campaign_id, state, within) = (asked.campaign_id, asked.state, reach.campaigns());
    let filter = flows::Filter { campaign_id, state, within };
    let limit = limit(asked.limit)?;
    let flows = flows::list(&app.pool, filter, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(flows, limit, |flow| flow.id)))
}

/// Shows a flow with the task that counts at each place.
#[utoipa::path(
    get,
    path = "/v1/flows/{id}",
    operation_id = "show_flow",
    tag = "flows",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Shown),
        (status = 404, description = "`unknown_flow`"),
    ),
)]
async fn show(app: App, Id(id): Id) -> Result<Json<Shown>, Problem> {
    let mut tx = begin_read(&app).await?;
    Ok(Json(flows::show(&mut tx, id).await?))
}

/// Lets nothing of a flow begin any more; what has begun goes on.
#[utoipa::path(
    post,
    path = "/v1/flows/{id}/pause",
    operation_id = "pause_flow",
    tag = "flows",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Flow),
        (status = 404, description = "`unknown_flow`"),
        (status = 409, description = "`flow_ended`, `flow_paused`"),
    ),
)]
async fn pause(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Flow>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let flow = flows::pause(&mut tx, id, now).await?;
    audit::write(&mut *tx, &who, Action::FlowPause, id, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(flow))
}

/// Lets a paused flow go on.
#[utoipa::path(
    post,
    path = "/v1/flows/{id}/resume",
    operation_id = "resume_flow",
    tag = "flows",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Flow),
        (status = 404, description = "`unknown_flow`"),
        (status = 409, description = "`flow_not_paused`"),
    ),
)]
async fn resume(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Flow>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let flow = flows::resume(&mut tx, id, now).await?;
    audit::write(&mut *tx, &who, Action::FlowResume, id, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(flow))
}

/// Asks again for the tasks of a step and for all that wait for them. What of that has not ended is cancelled.
#[utoipa::path(
    post,
    path = "/v1/flows/{id}/retry",
    operation_id = "retry_flow",
    tag = "flows",
    params(("id" = Uuid, Path)),
    request_body = From,
    responses(
        (status = 200, body = Flow),
        (status = 404, description = "`unknown_flow`, `unknown_step`, `unknown_agent`"),
        (status = 409, description = "`flow_paused`, `campaign_closed`, `budget_exceeded`, `broken_agent`"),
        (status = 422, description = "`bad_value`"),
        (status = 503, description = "`queue_full`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn retry(
    app: App,
    who: Actor,
    Id(id): Id,
    Extension(admission): Extension<Admission>,
    Body(From { from }): Body<From>,
) -> Result<Json<Flow>, Problem> {
    let (catalogue, added_by, now) = (app.agents.current(), who.label(), app.clock.now());
    let n_more = flows::n_more(&app.pool, id, &from).await? as u64;
    let room = admission.admit(&app, n_more).await?;
    let mut tx = begin(&app).await?;
    let config = &app.config.tasks;
    let flow = flows::retry(&mut tx, config, &catalogue, (id, &from), Some(&added_by), now).await?;
    audit::write(&mut *tx, &who, Action::FlowRetry, id, json!({ "from": from }), now).await?;
    commit(tx).await?;
    room.used(n_more);
    Ok(Json(flow))
}

/// Cancels all of a flow that has not ended: at once what does not run, through its worker what does.
#[utoipa::path(
    post,
    path = "/v1/flows/{id}/cancel",
    operation_id = "cancel_flow",
    tag = "flows",
    params(("id" = Uuid, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = CancelledFlow),
        (status = 404, description = "`unknown_flow`"),
        (status = 409, description = "`flow_ended`"),
        (status = 422, description = "`nul_in_text`, `bad_argument`"),
    ),
)]
async fn cancel(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<CancelledFlow>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let flow = flows::cancel(&mut tx, id, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::FlowCancel, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(flow))
}

async fn load(app: &App) -> Result<Templates, flows::Error> {
    Ok(Templates::load_aside(&app.config.flows, app.agents.current()).await?)
}
