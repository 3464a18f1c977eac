//! `/v1/workers`.

use axum::{Json, Router, routing::get};
use serde::{Deserialize, Serialize};

use super::{Front, Problem, input::Asked, page::limit};
use crate::{
    app::App,
    queue::admin::{self, WorkerView},
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/workers", get(list))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Those that are gone stay for some days; nobody reads further back than a page.
#[derive(Serialize, utoipa::ToSchema)]
struct Workers {
    items: Vec<WorkerView>,
}

/// Lists worker processes, the latest first.
#[utoipa::path(
    get,
    path = "/v1/workers",
    operation_id = "list_workers",
    tag = "queue",
    params(Listed),
    responses((status = 200, body = Workers)),
)]
async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Workers>, Problem> {
    let items = admin::list_workers(&app.pool, limit(asked.limit)?).await?;
    Ok(Json(Workers { items }))
}
