//! `/v1/jobs`: live jobs and dead letters.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Front, Problem,
    input::{Asked, Body, Number},
    page::{Listing, limit},
    tasks::{Nothing, Reasoned},
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        tasks::{self, CancelledTask, RetriedJob},
    },
    queue::admin::{self, Cancelled, Explanation, JobDetail, JobFilter, JobSummary},
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/jobs", get(list))
        .route("/v1/jobs/{id}", get(show))
        .route("/v1/jobs/{id}/explain", get(explain))
        .route("/v1/jobs/{id}/retry", post(retry))
        .route("/v1/jobs/{id}/cancel", post(cancel))
        .route("/v1/jobs/{id}/hold", post(hold))
        .route("/v1/jobs/{id}/release", post(release))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, show, explain, retry, cancel, hold, release))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    queue: Option<String>,
    kind: Option<String>,
    #[param(inline)]
    state: Option<State>,
    lane: Option<String>,
    cursor: Option<i64>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Of the jobs that are asked for; `dead` are dead letters.
#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = JobState)]
enum State {
    Scheduled,
    Ready,
    Blocked,
    Held,
    Running,
    Dead,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ChangedJob {
    id: i64,
    /// It is in this state now.
    state: String,
}

#[derive(Serialize, utoipa::ToSchema)]
struct CancelledJob {
    id: i64,
    cancel: Cancelled,
    /// The task that it runs, if something of that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<CancelledTask>,
}

/// Nobody finds out why something is held, if it is not said.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldReason {
    #[serde(default = "super::tasks::by_request")]
    #[schema(min_length = 1)]
    pub reason: String,
}

/// Lists jobs by id.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "list_jobs",
    tag = "queue",
    params(Listed),
    responses((status = 200, body = Listing<JobSummary>)),
)]
async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<JobSummary>>, Problem> {
    let limit = limit(asked.limit)?;
    let filter = JobFilter {
        queue: asked.queue,
        kind: asked.kind,
        state: asked.state.map(|state| state.as_str().to_owned()),
        lane: asked.lane,
        after_id: asked.cursor,
        limit: Some(limit + 1),
    };
    let jobs = admin::list_jobs(&app.pool, &filter).await?;
    Ok(Json(Listing::of(jobs, limit, |job| job.id)))
}

/// Shows a job with its payload and its attempts.
#[utoipa::path(
    get,
    path = "/v1/jobs/{id}",
    operation_id = "show_job",
    tag = "queue",
    params(("id" = i64, Path)),
    responses((status = 200, body = JobDetail), (status = 404, description = "`unknown_job`")),
)]
async fn show(app: App, Number(id): Number) -> Result<Json<JobDetail>, Problem> {
    let mut tx = begin_read(&app).await?;
    Ok(Json(admin::find_job(&mut tx, id).await?))
}

/// Says in words why a job is in its state, and what has to happen next.
#[utoipa::path(
    get,
    path = "/v1/jobs/{id}/explain",
    operation_id = "explain_job",
    tag = "queue",
    params(("id" = i64, Path)),
    responses((status = 200, body = Explanation), (status = 404, description = "`unknown_job`")),
)]
async fn explain(app: App, Number(id): Number) -> Result<Json<Explanation>, Problem> {
    let explanation = admin::explain(&app.pool, id).await?;
    if explanation.state == "unknown" {
        let Explanation { because, next, .. } = explanation;
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            "unknown_job",
            format!("{because} {next}"),
        ));
    }
    Ok(Json(explanation))
}

/// Runs a dead, held or waiting job again.
///
/// Of a task that has failed or was cancelled, the task is retried, with another job. The dead letter of a task that has moved on
/// is removed, and nothing runs.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/retry",
    operation_id = "retry_job",
    tag = "queue",
    params(("id" = i64, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = RetriedJob),
        (status = 404, description = "`unknown_job`"),
        (status = 409, description = "`conflict`, `task_ended`, `erased`"),
    ),
)]
async fn retry(
    app: App,
    who: Actor,
    Number(id): Number,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<RetriedJob>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let retried = tasks::retry_job(&mut tx, id, now).await?;
    let data = json!({ "task_id": retried.task_id });
    audit::write(&mut *tx, &who, Action::JobRetry, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(retried))
}

/// Cancels a job: at once if it does not run, through its worker if it does.
///
/// That of a task is cancelled as the task is, with what it has handed out.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/cancel",
    operation_id = "cancel_job",
    tag = "queue",
    params(("id" = i64, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = CancelledJob),
        (status = 404, description = "`unknown_job`"),
        (status = 422, description = "`bad_argument`"),
    ),
)]
async fn cancel(
    app: App,
    who: Actor,
    Number(id): Number,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<CancelledJob>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let tasks::CancelledJob { cancel, task } = tasks::cancel_job(&mut tx, id, &reason, now).await?;
    audit::write(&mut *tx, &who, Action::JobCancel, id, json!({ "reason": reason }), now).await?;
    commit(tx).await?;
    let task = task.map(|(task_id, cancellation)| CancelledTask { task_id, cancellation });
    Ok(Json(CancelledJob { id, cancel, task }))
}

/// Keeps a job from running until it is released; a blocked one is held when its turn comes.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/hold",
    operation_id = "hold_job",
    tag = "queue",
    params(("id" = i64, Path)),
    request_body = HoldReason,
    responses(
        (status = 200, body = ChangedJob),
        (status = 404, description = "`unknown_job`"),
        (status = 409, description = "`conflict`"),
        (status = 422, description = "`bad_argument`"),
    ),
)]
async fn hold(
    app: App,
    who: Actor,
    Number(id): Number,
    Body(HoldReason { reason }): Body<HoldReason>,
) -> Result<Json<ChangedJob>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let state = admin::hold_job(&mut *tx, id, &reason).await?;
    audit::write(&mut *tx, &who, Action::JobHold, id, json!({ "reason": reason }), now).await?;
    commit(tx).await?;
    Ok(Json(ChangedJob { id, state }))
}

/// Lets a held job go on.
#[utoipa::path(
    post,
    path = "/v1/jobs/{id}/release",
    operation_id = "release_job",
    tag = "queue",
    params(("id" = i64, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = ChangedJob),
        (status = 404, description = "`unknown_job`"),
        (status = 409, description = "`conflict`"),
    ),
)]
async fn release(
    app: App,
    who: Actor,
    Number(id): Number,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<ChangedJob>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let state = admin::release_job(&mut *tx, id).await?;
    audit::write(&mut *tx, &who, Action::JobRelease, id, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(ChangedJob { id, state }))
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
            Self::Held => "held",
            Self::Running => "running",
            Self::Dead => "dead",
        }
    }
}
