//! `/v1/tasks`, and the way in: `POST /v1/campaigns/{id}/tasks`.

use std::time::Duration;

use axum::{
    Extension, Json, Router,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Front, Problem, events,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    trace,
    waiters::Waiters,
};
use crate::{
    app::App,
    domain::{
        amount::Limit,
        audit::{self, Action, Actor},
        sessions::resolve::Mode,
        tasks::{self, Added, Detail, Explanation, State, Task},
        transaction::{begin, commit},
    },
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Told to whoever finds a task cancelled without a reason.
const BY_REQUEST: &str = "by a request";

pub(super) fn routes(waiters: Waiters) -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/tasks", post(add))
        .route("/v1/tasks", get(list))
        .route("/v1/tasks/{id}", get(show))
        .route("/v1/tasks/{id}/cancel", post(cancel))
        .route("/v1/tasks/{id}/retry", post(retry))
        .route("/v1/tasks/{id}/explain", get(explain))
        .route("/v1/tasks/{id}/events", get(events::of_task))
        .layer(Extension(waiters))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    agent: String,
    #[serde(default = "main")]
    instance: String,
    prompt: String,
    session: Option<Mode>,
    #[serde(default)]
    budget: Limit,
    priority: Option<i32>,
    run_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    campaign_id: Option<Uuid>,
    agent: Option<String>,
    state: Option<State>,
    cursor: Option<Uuid>,
    limit: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    /// How long to wait for the end of the task, at most as long as a request may take.
    #[serde(default)]
    wait_secs: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reasoned {
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Takes no fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

async fn add(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    headers: HeaderMap,
    Body(asked): Body<New>,
) -> Result<Response, Problem> {
    let (catalogue, added_by) = (app.agents.current(), who.label());
    let new = tasks::New {
        campaign_id,
        agent: catalogue.agent(&asked.agent)?,
        instance: &asked.instance,
        prompt: &asked.prompt,
        session_mode: asked.session,
        budget: asked.budget,
        idempotency_key: key(&headers)?,
        priority: asked.priority,
        run_at: asked.run_at,
        added_by: Some(&added_by),
    };
    let asked = trace::Asked::begin(&app, &headers);
    let mut tx = begin(&app.pool).await?;
    let added = tasks::add(&mut tx, &app.config.tasks, &new, app.clock.now()).await?;
    if let Some(context) = asked.context().filter(|_| added.created) {
        tasks::set_traceparent(&mut *tx, added.task.id, &context.to_string()).await?;
    }
    commit(tx).await?;
    asked.end(&app, &added.task);
    Ok(answer(&added))
}

async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<Task>>, Problem> {
    let filter = tasks::Filter {
        campaign_id: asked.campaign_id,
        agent: asked.agent.as_deref(),
        state: asked.state,
    };
    let limit = limit(asked.limit)?;
    let tasks = tasks::list(&app.pool, filter, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(tasks, limit, |task| task.id)))
}

async fn show(
    app: App,
    Id(id): Id,
    Extension(waiters): Extension<Waiters>,
    Asked(Shown { wait_secs }): Asked<Shown>,
) -> Result<Json<Detail>, Problem> {
    if wait_secs > 0 {
        let _place = waiters.enter()?;
        // The answer has to be on its way before the request is given up.
        let longest = app.config.http.request_timeout_secs.saturating_sub(2);
        let waited = tasks::wait(&app.pool, id, Duration::from_secs(wait_secs.min(longest)));
        // A service that stops says how the task stands.
        app.shutdown.soft.run_until_cancelled(waited).await.transpose()?;
    }
    let mut tx = begin(&app.pool).await?;
    Ok(Json(tasks::detail(&mut tx, id).await?))
}

async fn cancel(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Value>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let cancelled = tasks::cancel(&mut tx, id, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::TaskCancel, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(json!({ "task_id": id, "cancel": cancelled })))
}

async fn retry(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Task>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let task = tasks::retry(&mut tx, id, now).await?;
    audit::write(&mut *tx, &who, Action::TaskRetry, id, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(task))
}

async fn explain(app: App, Id(id): Id) -> Result<Json<Explanation>, Problem> {
    let mut tx = begin(&app.pool).await?;
    Ok(Json(tasks::explain(&mut tx, id).await?))
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

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| !key.is_empty());
    key.map(Some).ok_or_else(|| {
        let detail = "Idempotency-Key is empty, or has other than visible ASCII characters";
        Problem::new(StatusCode::BAD_REQUEST, "bad_idempotency_key", detail)
    })
}

fn main() -> String {
    "main".to_owned()
}

fn by_request() -> String {
    BY_REQUEST.to_owned()
}
