//! `/v1/cleanup`.

use axum::{Json, Router, routing::get};
use serde::Deserialize;

use super::{
    Front, Problem,
    input::Asked,
    page::{Listing, limit},
    transaction::begin_read,
};
use crate::{
    app::App,
    domain::cleanups::{self, CleanupRun, Preview, Walk},
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/cleanup/runs", get(runs)).route("/v1/cleanup/preview", get(preview))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(runs, preview))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    cursor: Option<i64>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists the cleanups that were, the latest first.
#[utoipa::path(
    get,
    path = "/v1/cleanup/runs",
    operation_id = "list_cleanup_runs",
    tag = "cleanup",
    params(Listed),
    responses(
        (status = 200, body = Listing<CleanupRun>),
    ),
)]
async fn runs(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<CleanupRun>>, Problem> {
    let limit = limit(asked.limit)?;
    let runs = cleanups::list(&app.pool, asked.cursor, limit + 1).await?;
    Ok(Json(Listing::of(runs, limit, |run| run.id)))
}

/// What a cleanup would remove now. Reads all of it.
#[utoipa::path(
    get,
    path = "/v1/cleanup/preview",
    operation_id = "preview_cleanup",
    tag = "cleanup",
    responses(
        (status = 200, body = Preview),
    ),
)]
async fn preview(app: App) -> Result<Json<Preview>, Problem> {
    let mut tx = begin_read(&app).await?;
    let walk = Walk::new(app.clock.now(), &app.config.sessions, &app.config.memory);
    Ok(Json(cleanups::preview(&mut tx, walk).await?))
}
