//! `/v1/schedules`.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Name},
    tasks::{Nothing, Reasoned},
    transaction::{begin, commit},
};
use crate::{
    app::App,
    domain::{
        agents::Addressed,
        audit::{self, Action, Actor},
        objects,
        schedules::{self, Schedule, When},
        tasks::AddTask,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/schedules", get(list))
        .route("/v1/schedules/{name}", get(show).put(put).delete(remove))
        .route("/v1/schedules/{name}/run", post(run))
        .route("/v1/schedules/{name}/pause", post(pause))
        .route("/v1/schedules/{name}/resume", post(resume))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, show, put, remove, run, pause, resume))]
pub(super) struct Described;

/// There are a handful: all of them are one page.
#[derive(Serialize, utoipa::ToSchema)]
struct Schedules {
    items: Vec<Schedule>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RecurringTask, example = json!({ "cron": "0 30 7 * * Mon", "time_zone": "Europe/Berlin", "task": { "campaign_id": "00000000-0000-0000-0000-000000000000", "agent": "copywriter", "prompt": "Plan the week." } }))]
struct Recurring {
    cron: String,
    #[serde(default = "utc")]
    time_zone: String,
    #[serde(default = "an_hour")]
    #[schema(minimum = 1, maximum = 2147483647)]
    catch_up_secs: u32,
    #[serde(deserialize_with = "objects::object")]
    task: AddTask,
}

#[derive(Serialize, utoipa::ToSchema)]
struct AcceptedRun {
    schedule: String,
    job_id: i64,
    /// Of the job.
    state: String,
}

/// Lists what is done again and again.
#[utoipa::path(
    get,
    path = "/v1/schedules",
    operation_id = "list_schedules",
    tag = "schedules",
    responses(
        (status = 200, body = Schedules),
    ),
)]
async fn list(app: App) -> Result<Json<Schedules>, Problem> {
    Ok(Json(Schedules { items: schedules::list(&app.pool, app.clock.now()).await? }))
}

/// Shows one schedule.
#[utoipa::path(
    get,
    path = "/v1/schedules/{name}",
    operation_id = "show_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    responses(
        (status = 200, body = Schedule),
        (status = 404, description = "`unknown_schedule`"),
    ),
)]
async fn show(app: App, Name(name): Name) -> Result<Json<Schedule>, Problem> {
    Ok(Json(schedules::get(&app.pool, &name, app.clock.now()).await?))
}

/// A task that is asked for again and again: written down, or what has changed of it.
#[utoipa::path(
    put,
    path = "/v1/schedules/{name}",
    operation_id = "put_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    request_body = Recurring,
    responses(
        (status = 200, body = Schedule),
        (status = 404, description = "`unknown_agent`, `unknown_campaign`"),
        (status = 409, description = "`built_in_schedule`, `campaign_closed`, `budget_exceeded`, `broken_agent`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`bad_timetable`, `bad_value`, `bad_instance`, `empty_text`, `nul_in_text`, `bad_argument`"),
    ),
)]
async fn put(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(asked): Body<Recurring>,
) -> Result<Json<Schedule>, Problem> {
    let catalogue = app.agents.current();
    let Addressed { agent, instance } =
        catalogue.addressed(&asked.task.agent, &asked.task.instance)?;
    // Written down as what it means now: a file may get that very name later.
    let task =
        AddTask { agent: agent.name.clone(), instance: instance.to_owned(), ..asked.task.clone() };
    let when =
        When { cron: &asked.cron, time_zone: &asked.time_zone, catch_up_secs: asked.catch_up_secs };
    let (config, now) = (&app.config.tasks, app.clock.now());
    let mut tx = begin(&app).await?;
    let schedule = schedules::put_task(&mut tx, config, &name, when, (&task, agent), now).await?;
    let data = json!({ "cron": asked.cron, "time_zone": asked.time_zone, "agent": task.agent,
                       "campaign_id": task.campaign_id });
    audit::write(&mut *tx, &who, Action::SchedulePut, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(schedule))
}

/// Removes a schedule; what it has asked for stays.
#[utoipa::path(
    delete,
    path = "/v1/schedules/{name}",
    operation_id = "remove_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, description = "`unknown_schedule`"),
        (status = 409, description = "`built_in_schedule`"),
    ),
)]
async fn remove(app: App, who: Actor, Name(name): Name) -> Result<StatusCode, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    schedules::remove(&mut tx, &name, now).await?;
    audit::write(&mut *tx, &who, Action::ScheduleRemove, &name, json!({}), now).await?;
    commit(tx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Does it now, beside its timetable.
///
/// A worker does it: the job says how it stands.
#[utoipa::path(
    post,
    path = "/v1/schedules/{name}/run",
    operation_id = "run_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 202, body = AcceptedRun),
        (status = 404, description = "`unknown_schedule`"),
    ),
)]
async fn run(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<AcceptedRun>), Problem> {
    let mut tx = begin(&app).await?;
    let job = schedules::run(&mut tx, &name).await?;
    let data = json!({ "job_id": job.job_id });
    audit::write(&mut *tx, &who, Action::ScheduleRun, &name, data, app.clock.now()).await?;
    commit(tx).await?;
    let accepted = AcceptedRun { schedule: name, job_id: job.job_id, state: job.state };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Skips its moments until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/schedules/{name}/pause",
    operation_id = "pause_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    request_body = Reasoned,
    responses(
        (status = 200, body = Schedule),
        (status = 404, description = "`unknown_schedule`"),
        (status = 422, description = "`nul_in_text`"),
    ),
)]
async fn pause(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Schedule>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let schedule = schedules::pause(&mut tx, &name, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::SchedulePause, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(schedule))
}

/// Ends a pause.
#[utoipa::path(
    post,
    path = "/v1/schedules/{name}/resume",
    operation_id = "resume_schedule",
    tag = "schedules",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Schedule),
        (status = 404, description = "`unknown_schedule`"),
    ),
)]
async fn resume(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Schedule>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let schedule = schedules::resume(&mut tx, &name, now).await?;
    audit::write(&mut *tx, &who, Action::ScheduleResume, &name, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(schedule))
}

fn utc() -> String {
    "UTC".to_owned()
}

fn an_hour() -> u32 {
    3_600
}
