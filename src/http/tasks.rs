//! `/v1/tasks`, and the way in: `POST /v1/campaigns/{id}/tasks`.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{
    Front, Problem,
    auth::Pass,
    events,
    input::{Asked, Body, Id, Patience},
    intake::{self, Intake},
    reach::Reach,
    trace,
    transaction::begin_read,
    waiters::Waiters,
};
use crate::{
    app::App,
    domain::{
        agents::SessionMode as Mode,
        agents::{Addressed, MAIN},
        amount::Limit,
        audit::Actor,
        objects,
        tasks::{self, Added, After, Detail, OnFailure, Task},
        timestamp,
    },
    operations::Admission,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that an earlier request has made what is answered.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn routes(waiters: Waiters, admission: Admission) -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/tasks", post(add))
        .route("/v1/tasks/{id}", get(show))
        .route("/v1/tasks/{id}/events", get(events::of_task))
        .layer(Extension(waiters))
        .layer(Extension((admission, Intake::default())))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(add, show, events::of_task))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTask, example = json!({ "agent": "copywriter", "prompt": "Write part one." }))]
struct New {
    /// The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})?$")]
    agent: String,
    #[serde(default = "main")]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    instance: String,
    #[schema(min_length = 1)]
    prompt: String,
    /// Where in the work it belongs: the name of a node's file. Else wherever the session stands.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    node: Option<String>,
    session: Option<Mode>,
    #[serde(default, deserialize_with = "objects::object")]
    budget: Limit,
    #[schema(minimum = 0, maximum = 32767)]
    priority: Option<i32>,
    #[serde(default, deserialize_with = "timestamp::optional")]
    run_at: Option<DateTime<Utc>>,
    /// It runs when all of these have ended, and is told what they came to.
    #[serde(default)]
    #[schema(max_items = 1000)]
    depends_on: Vec<After>,
    /// If one of those has failed or was cancelled.
    #[serde(default)]
    on_failure: OnFailure,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// How long to wait for the end of the task: `30s`, `500ms`. At most as long as a request may take.
    #[param(value_type = Option<String>, pattern = "^[0-9]{1,9}(ms|s)$", example = "30s")]
    wait: Option<Patience>,
}

/// Asks an agent to do something.
///
/// The same Idempotency-Key and question give the same task again, with 200; another question under the key is a conflict. Keys belong
/// to a campaign and an API key, by its name; everything without an API key is one caller.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/tasks",
    tag = "tasks",
    operation_id = "add_task",
    params(
        ("id" = Uuid, Path, description = "The campaign"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 195 visible ASCII characters", max_length = 195, pattern = "^[!-~][ -~]*$"),
    ),
    request_body = New,
    responses(
        (status = 201, body = Task, headers(("Location" = String, description = "Where the task is"))),
        (
            status = 200,
            body = Task,
            description = "An earlier request with this key made it",
            headers(
                ("Location" = String, description = "Where the task is"),
                ("Idempotent-Replayed" = String, description = "`true`"),
            ),
        ),
        (status = 400, description = "`bad_idempotency_key`"),
        (status = 404, description = "`unknown_agent`, `unknown_node`, `unknown_campaign`, `unknown_predecessor`"),
        (status = 409, description = "`idempotency_conflict`, `campaign_closed`, `budget_exceeded`, `broken_agent`, `broken_node`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_text`, `nul_in_text`, `bad_idempotency_key`, `bad_instance`, `empty_budget`, `too_many_predecessors`, `bad_argument`, `bad_value`"),
        (status = 503, description = "`queue_full`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn add(
    app: App,
    who: Actor,
    reach: Reach,
    Id(campaign_id): Id,
    Extension((admission, intake)): Extension<(Admission, Intake)>,
    headers: HeaderMap,
    Body(new): Body<New>,
) -> Result<Response, Problem> {
    let catalogue = app.agents.current();
    let Addressed { agent, instance } = catalogue.addressed(&new.agent, &new.instance)?;
    let node = new.node.as_deref().map(|node| catalogue.node(node)).transpose()?.map(Arc::clone);
    let (agent, instance) = (Arc::clone(agent), instance.to_owned());
    let idempotency_key = key(&headers)?.map(str::to_owned);
    let room = admission.admit(&app.pool, app.config.max_waiting, 1).await?;
    let asked = trace::Asked::begin(&app, &headers);
    let traceparent = asked.context().map(|context| context.to_string());
    let new = intake::Asked {
        campaign_id,
        agent,
        instance,
        node,
        prompt: new.prompt,
        session: new.session,
        budget: new.budget,
        idempotency_key,
        priority: new.priority,
        run_at: new.run_at,
        added_by: who.label(),
        traceparent,
        depends_on: new.depends_on,
        on_failure: new.on_failure,
        only_of: reach.only_of().map(str::to_owned),
    };
    let added = intake.add(&app, new).await?;
    room.used(added.created.into());
    asked.end(&app, &added.task);
    Ok(answer(&added))
}

/// Shows a task with its attempts; waits for its end first, if asked to.
///
/// An API key with the scope `enqueue` alone finds the tasks that keys of its name have added.
#[utoipa::path(
    get,
    path = "/v1/tasks/{id}",
    operation_id = "show_task",
    tag = "tasks",
    params(("id" = Uuid, Path), Shown),
    responses(
        (status = 200, body = Detail),
        (status = 404, description = "`unknown_task`"),
        (status = 429, description = "`too_many_waiting_per_client`", headers(("Retry-After" = i32, description = "Seconds"))),
        (
            status = 503,
            description = "`too_many_waiting`",
            headers(("Retry-After" = i32, description = "Seconds")),
        ),
    ),
)]
async fn show(
    app: App,
    pass: Pass,
    Id(id): Id,
    Extension(waiters): Extension<Waiters>,
    Asked(Shown { wait }): Asked<Shown>,
) -> Result<Json<Detail>, Problem> {
    if let Some(Patience(wait)) = wait.filter(|patience| !patience.0.is_zero()) {
        let _place = waiters.enter(pass.holder())?;
        // The answer has to be on its way before the request is given up.
        let longest = Duration::from_secs(app.config.request_timeout_secs.saturating_sub(2));
        let waited = tasks::wait(&app.pool, id, wait.min(longest));
        // A service that stops says how the task stands.
        app.shutdown.soft.run_until_cancelled(waited).await.transpose()?;
    }
    let mut tx = begin_read(&app).await?;
    Ok(Json(tasks::detail(&mut tx, id).await?))
}

fn answer(added: &Added) -> Response {
    let location = format!("/v1/tasks/{}", added.task.id);
    let headers = [(LOCATION, location)];
    match added.created {
        true => (StatusCode::CREATED, headers, Json(&added.task)).into_response(),
        false => {
            let replayed = [(REPLAYED, HeaderValue::from_static("true"))];
            (StatusCode::OK, headers, replayed, Json(&added.task)).into_response()
        }
    }
}

pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| !key.is_empty());
    key.map(Some).ok_or_else(|| {
        let detail = "Idempotency-Key is empty, or has other than visible ASCII characters";
        Problem::new(StatusCode::BAD_REQUEST, "bad_idempotency_key", detail)
    })
}

fn main() -> String {
    MAIN.to_owned()
}
