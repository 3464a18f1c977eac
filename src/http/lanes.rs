//! `/v1/lanes`. The name of a lane has slashes in it, which are written as `%2F` here.

use axum::{
    Json, Router,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Front, Problem,
    input::{Asked, Body, Name},
    jobs::HoldReason,
    page::{Listing, limit},
    tasks::Nothing,
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::audit::{self, Action, Actor},
    queue::admin::{self, LaneView},
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/lanes", get(list))
        .route("/v1/lanes/{name}", get(show))
        .route("/v1/lanes/{name}/hold", post(hold))
        .route("/v1/lanes/{name}/release", post(release))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, show, hold, release))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// Only lanes that are held.
    #[serde(default)]
    held: bool,
    cursor: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct HeldLane {
    held: String,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ReleasedLane {
    released: String,
}

/// Lists the names of the lanes that have jobs.
#[utoipa::path(
    get,
    path = "/v1/lanes",
    operation_id = "list_lanes",
    tag = "queue",
    params(Listed),
    responses((status = 200, body = Listing<String>)),
)]
async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<String>>, Problem> {
    let limit = limit(asked.limit)?;
    let after = asked.cursor.unwrap_or_default();
    let lanes = admin::list_lanes(&app.pool, asked.held, &after, limit + 1).await?;
    Ok(Json(Listing::of(lanes, limit, String::clone)))
}

/// Shows a lane with its first members, in order.
#[utoipa::path(
    get,
    path = "/v1/lanes/{name}",
    operation_id = "show_lane",
    tag = "queue",
    params(("name" = String, Path)),
    responses((status = 200, body = LaneView), (status = 404, description = "`unknown_lane`")),
)]
async fn show(app: App, Name(name): Name) -> Result<Json<LaneView>, Problem> {
    let mut tx = begin_read(&app).await?;
    Ok(Json(admin::find_lane(&mut tx, &name).await?))
}

/// Stops a lane after its running job.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/hold",
    operation_id = "hold_lane",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = HoldReason,
    responses(
        (status = 200, body = HeldLane),
        (status = 404, description = "`unknown_lane`"),
        (status = 422, description = "`bad_argument`"),
    ),
)]
async fn hold(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(HoldReason { reason }): Body<HoldReason>,
) -> Result<Json<HeldLane>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    admin::hold_lane(&mut *tx, &name, &reason).await?;
    audit::write(&mut *tx, &who, Action::LaneHold, &name, json!({ "reason": reason }), now).await?;
    commit(tx).await?;
    Ok(Json(HeldLane { held: name }))
}

/// Lets a held lane go on; a failed head that held it becomes a dead letter.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/release",
    operation_id = "release_lane",
    tag = "queue",
    params(("name" = String, Path)),
    request_body = Nothing,
    responses((status = 200, body = ReleasedLane), (status = 404, description = "`unknown_lane`")),
)]
async fn release(
    app: App,
    who: Actor,
    Name(name): Name,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<ReleasedLane>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    admin::release_lane(&mut *tx, &name).await?;
    audit::write(&mut *tx, &who, Action::LaneRelease, &name, json!({}), now).await?;
    commit(tx).await?;
    Ok(Json(ReleasedLane { released: name }))
}
