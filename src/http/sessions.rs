//! `/v1/sessions`.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    tasks::{Nothing, Reasoned},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        compactions::{self, Cause},
        messages::{self, Span, Stored},
        sessions::{self, Detail, Session},
        tasks::{self, Interrupted},
        transaction::{begin, commit},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/sessions", get(list))
        .route("/v1/sessions/{id}", get(show))
        .route("/v1/sessions/{id}/messages", get(transcript))
        .route("/v1/sessions/{id}/view", get(view))
        .route("/v1/sessions/{id}/reset", post(reset))
        .route("/v1/sessions/{id}/compact", post(compact))
        .route("/v1/sessions/{id}/uncompact", post(uncompact))
        .route("/v1/sessions/{id}/interrupt", post(interrupt))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    campaign_id: Option<Uuid>,
    agent: Option<String>,
    /// Only those that are not closed.
    #[serde(default)]
    open: bool,
    cursor: Option<Uuid>,
    limit: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    /// A place in the transcript.
    cursor: Option<i64>,
    limit: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reset {
    /// Whether the successor remembers nothing.
    #[serde(default)]
    fresh: bool,
}

async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<Session>>, Problem> {
    let filter = sessions::Filter {
        campaign_id: asked.campaign_id,
        agent: asked.agent.as_deref(),
        open_only: asked.open,
    };
    let limit = limit(asked.limit)?;
    let sessions = sessions::list(&app.pool, filter, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(sessions, limit, |session| session.id)))
}

async fn show(app: App, Id(id): Id) -> Result<Json<Detail>, Problem> {
    let mut tx = begin(&app.pool).await?;
    Ok(Json(sessions::detail(&mut tx, id).await?))
}

async fn transcript(
    app: App,
    Id(id): Id,
    Asked(asked): Asked<Read>,
) -> Result<Json<Listing<Stored>>, Problem> {
    let limit = limit(asked.limit)?;
    sessions::get(&app.pool, id).await?;
    let span = Span { after_seq: asked.cursor.unwrap_or(0), limit: limit + 1 };
    let messages = messages::list(&app.pool, id, span).await?;
    Ok(Json(Listing::of(messages, limit, |message| message.seq)))
}

/// The history as the model gets it: the summary, if there is one, and what was said since.
async fn view(app: App, Id(id): Id) -> Result<Json<Value>, Problem> {
    Ok(Json(sessions::history(&app.pool, id).await?))
}

async fn reset(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reset { fresh }): Body<Reset>,
) -> Result<Json<Session>, Problem> {
    let mut tx = begin(&app.pool).await?;
    let session = sessions::reset(&mut tx, id, fresh).await?;
    let data = json!({ "fresh": fresh });
    audit::write(&mut *tx, &who, Action::SessionReset, id, data, app.clock.now()).await?;
    commit(tx).await?;
    Ok(Json(session))
}

/// A worker does it; what came of it is in the session's list of compactions.
async fn compact(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let mut tx = begin(&app.pool).await?;
    let job = compactions::request(&mut tx, id, Cause::Manual).await?;
    let data = json!({ "job_id": job.job_id });
    audit::write(&mut *tx, &who, Action::SessionCompact, id, data, app.clock.now()).await?;
    commit(tx).await?;
    let accepted = json!({ "session_id": id, "job_id": job.job_id });
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

async fn uncompact(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Session>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let session = sessions::uncompact(&mut tx, id, now).await?;
    let data = json!({ "generation": session.generation });
    audit::write(&mut *tx, &who, Action::SessionUncompact, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(session))
}

async fn interrupt(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Interrupted>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let interrupted = tasks::interrupt(&mut tx, id, &reason, now).await?;
    let data = json!({ "task_id": interrupted.task_id, "reason": reason });
    audit::write(&mut *tx, &who, Action::SessionInterrupt, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(interrupted))
}
