//! `/v1/schedules`.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Front, Problem,
    input::{Body, Name},
    tasks::{Nothing, Reasoned},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        schedules::{self, Schedule, When},
        tasks::AddTask,
        transaction::{begin, commit},
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

/// There are a handful: all of them are one page.
#[derive(Serialize)]
struct Schedules {
    items: Vec<Schedule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recurring {
    cron: String,
    #[serde(default = "utc")]
    time_zone: String,
    #[serde(default = "an_hour")]
    catch_up_secs: u32,
    task: AddTask,
}

async fn list(app: App) -> Result<Json<Schedules>, Problem> {
    Ok(Json(Schedules { items: schedules::list(&app.pool, app.clock.now()).await? }))
}

async fn show(app: App, Name(name): Name) -> Result<Json<Schedule>, Problem> {
    Ok(Json(schedules::get(&app.pool, &name, app.clock.now()).await?))
}

/// A task that is asked for again and again: written down, or what has changed of it.
async fn put(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(asked): Body<Recurring>,
) -> Result<Json<Schedule>, Problem> {
    let catalogue = app.agents.current();
    let agent = catalogue.agent(&asked.task.agent)?;
    let when =
        When { cron: &asked.cron, time_zone: &asked.time_zone, catch_up_secs: asked.catch_up_secs };
    let (config, now) = (&app.config.tasks, app.clock.now());
    let mut tx = begin(&app.pool).await?;
    let schedule =
        schedules::put_task(&mut tx, config, &name, when, (&asked.task, agent), now).await?;
    let data = json!({ "cron": asked.cron, "time_zone": asked.time_zone, "agent": asked.task.agent,
                       "campaign_id": asked.task.campaign_id });
    audit::write(&mut *tx, &who, Action::SchedulePut, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(schedule))
}

async fn remove(app: App, who: Actor, Name(name): Name) -> Result<StatusCode, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    schedules::remove(&mut tx, &name, now).await?;
    audit::write(&mut *tx, &who, Action::ScheduleRemove, &name, json!({}), now).await?;
    commit(tx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A worker does it: the job says how it stands.
async fn run(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let mut tx = begin(&app.pool).await?;
    let job = schedules::run(&mut tx, &name).await?;
    let data = json!({ "job_id": job.job_id });
    audit::write(&mut *tx, &who, Action::ScheduleRun, &name, data, app.clock.now()).await?;
    commit(tx).await?;
    let accepted = json!({ "schedule": name, "job_id": job.job_id, "state": job.state });
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

async fn pause(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Schedule>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let schedule = schedules::pause(&mut tx, &name, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::SchedulePause, &name, data, now).await?;
    commit(tx).await?;
    Ok(Json(schedule))
}

async fn resume(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Schedule>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
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
