//! `/v1/sessions`.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id, Numbered},
    page::{Listing, limit, page},
    reach::Reach,
    tasks::{Nothing, by_request},
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        compactions::{self, Archive, Cause, OpenedArchive},
        conversations,
        conversations::Detail,
        messages::{Span, Stored},
        sessions::{self, Session},
        tasks::{self, How, Interrupted},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/sessions", get(list))
        .route("/v1/sessions/{id}", get(show))
        .route("/v1/sessions/{id}/messages", get(transcript))
        .route("/v1/sessions/{id}/view", get(view))
        .route("/v1/sessions/{id}/archives", get(archives))
        .route("/v1/sessions/{id}/archives/{number}", get(archive))
        .route("/v1/sessions/{id}/reset", post(reset))
        .route("/v1/sessions/{id}/compact", post(compact))
        .route("/v1/sessions/{id}/uncompact", post(uncompact))
        .route("/v1/sessions/{id}/interrupt", post(interrupt))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    list, show, transcript, view, archives, archive, reset, compact, uncompact, interrupt
))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    campaign_id: Option<Uuid>,
    agent: Option<String>,
    /// Only those that are not closed.
    #[serde(default)]
    open: bool,
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Read {
    /// A place in the transcript.
    cursor: Option<i64>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Reset {
    /// Whether the successor remembers nothing.
    #[serde(default)]
    fresh: bool,
}

/// Each is a compaction: all of them are one page.
#[derive(Serialize, utoipa::ToSchema)]
struct Archives {
    items: Vec<Archive>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Interruption {
    #[serde(default = "by_request")]
    pub reason: String,
    #[serde(default)]
    pub how: How,
}

#[derive(Serialize, utoipa::ToSchema)]
struct AcceptedCompaction {
    session_id: Uuid,
    job_id: i64,
}

/// Lists sessions, the newest first.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    operation_id = "list_sessions",
    tag = "sessions",
    params(Listed),
    responses(
        (status = 200, body = Listing<Session>),
    ),
)]
async fn list(
    app: App,
    reach: Reach,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Session>>, Problem> {
    let filter = sessions::Filter {
        campaign_id: asked.campaign_id,
        agent: asked.agent.as_deref(),
        open_only: asked.open,
        within: reach.campaigns(),
    };
    let limit = limit(asked.limit)?;
    let sessions = sessions::list(&app.pool, filter, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(sessions, limit, |session| session.id)))
}

/// Shows a session with its compactions and its last turns.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    operation_id = "show_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Detail),
        (status = 404, description = "`unknown_session`"),
    ),
)]
async fn show(app: App, Id(id): Id) -> Result<Json<Detail>, Problem> {
    let mut tx = begin_read(&app).await?;
    Ok(Json(conversations::detail(&mut tx, id).await?))
}

/// Reads the transcript of a session, in order.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/messages",
    operation_id = "read_transcript",
    tag = "sessions",
    params(("id" = Uuid, Path), Read),
    responses(
        (status = 200, body = Listing<Stored>),
        (status = 404, description = "`unknown_session`"),
    ),
)]
async fn transcript(
    app: App,
    Id(id): Id,
    Asked(asked): Asked<Read>,
) -> Result<Json<Listing<Stored>>, Problem> {
    let limit = limit(asked.limit)?;
    let span = Span { after_seq: asked.cursor.unwrap_or(0), limit: limit + 1 };
    let mut tx = begin_read(&app).await?;
    let messages = sessions::transcript(&mut tx, id, span).await?;
    Ok(Json(Listing::of(messages, limit, |message| message.seq)))
}

/// The history as the model gets it: the summary, if there is one, and what was said since.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/view",
    operation_id = "view_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Vec<Object>),
        (status = 404, description = "`unknown_session`"),
    ),
)]
async fn view(app: App, Id(id): Id) -> Result<Json<Value>, Problem> {
    Ok(Json(sessions::history(&app.pool, id).await?))
}

/// Lists what compactions have taken out of what a session shows.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/archives",
    operation_id = "list_archives",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Archives),
        (status = 404, description = "`unknown_session`"),
    ),
)]
async fn archives(app: App, Id(id): Id) -> Result<Json<Archives>, Problem> {
    sessions::get(&app.pool, id).await?;
    Ok(Json(Archives { items: compactions::archives(&app.pool, id).await? }))
}

/// Reads an archive: what was put away, in order, and what stands in its place.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/archives/{number}",
    operation_id = "read_archive",
    tag = "sessions",
    params(("id" = Uuid, Path), ("number" = i32, Path, description = "The generation of its compaction"), Read),
    responses(
        (status = 200, body = OpenedArchive),
        (status = 404, description = "`unknown_session`, `unknown_archive`"),
    ),
)]
async fn archive(
    app: App,
    Numbered(id, number): Numbered,
    Asked(asked): Asked<Read>,
) -> Result<Json<OpenedArchive>, Problem> {
    let limit = limit(asked.limit)?;
    sessions::get(&app.pool, id).await?;
    let (mut tx, after_seq) = (begin_read(&app).await?, asked.cursor.unwrap_or(0));
    Ok(Json(compactions::open_archive(&mut tx, id, number, after_seq, limit).await?))
}

/// Closes a session; the next task of its conversation opens a successor.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/reset",
    operation_id = "reset_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    request_body = Reset,
    responses(
        (status = 200, body = Session),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`session_closed`, `session_busy`"),
    ),
)]
async fn reset(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reset { fresh }): Body<Reset>,
) -> Result<Json<Session>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let session = sessions::reset(&mut tx, id, fresh, now).await?;
    let data = json!({ "fresh": fresh });
    audit::write(&mut *tx, &who, Action::SessionReset, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(session))
}

/// Folds the older messages of a session into a summary.
///
/// A worker does it; the result is in the session's list of compactions. Where there is nothing to compact, the event
/// `session.compaction_not_needed` says why.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/compact",
    operation_id = "compact_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses(
        (status = 202, body = AcceptedCompaction),
        (status = 404, description = "`unknown_session`"),
        (status = 409, description = "`session_closed`"),
    ),
)]
async fn compact(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<AcceptedCompaction>), Problem> {
    let mut tx = begin(&app).await?;
    let job = compactions::request(&mut tx, id, Cause::Manual).await?;
    let data = json!({ "job_id": job.job_id });
    audit::write(&mut *tx, &who, Action::SessionCompact, id, data, app.clock.now()).await?;
    commit(tx).await?;
    let accepted = AcceptedCompaction { session_id: id, job_id: job.job_id };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Goes back to what was shown before the last compaction.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/uncompact",
    operation_id = "uncompact_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses(
        (status = 200, body = Session),
        (status = 404, description = "`unknown_session`, `unknown_compaction`"),
        (status = 409, description = "`session_closed`, `session_busy`, `nothing_to_undo`"),
    ),
)]
async fn uncompact(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Session>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let session = conversations::uncompact(&mut tx, id, now).await?;
    let data = json!({ "generation": session.generation });
    audit::write(&mut *tx, &who, Action::SessionUncompact, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(session))
}

/// Cancels the task whose turn runs in a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/interrupt",
    operation_id = "interrupt_session",
    tag = "sessions",
    params(("id" = Uuid, Path)),
    request_body = Interruption,
    responses(
        (status = 200, body = Interrupted),
        (status = 404, description = "`unknown_session`, `unknown_task`"),
        (status = 409, description = "`nothing_runs`, `session_closed`, `task_ended`, `task_requeued`"),
        (status = 422, description = "`nul_in_text`, `bad_argument`"),
    ),
)]
async fn interrupt(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Interruption { reason, how }): Body<Interruption>,
) -> Result<Json<Interrupted>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let interrupted = tasks::interrupt(&mut tx, id, how, &reason, now).await?;
    let data = json!({ "task_id": interrupted.task_id, "how": how, "reason": reason });
    audit::write(&mut *tx, &who, Action::SessionInterrupt, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(interrupted))
}
