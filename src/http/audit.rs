//! `/v1/audit`.

use axum::{Json, Router, routing::get};
use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{
    Front, Problem,
    input::Asked,
    page::{Listing, limit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Entry, Filter},
        timestamp,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/audit", get(list))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// A name, a kind, or the id of a key.
    actor: Option<String>,
    /// `task.cancel`, or `task` for everything that was done to tasks.
    action: Option<String>,
    subject: Option<String>,
    #[serde(default, deserialize_with = "timestamp::optional")]
    since: Option<DateTime<Utc>>,
    cursor: Option<i64>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// Lists who changed what, the latest first.
#[utoipa::path(
    get,
    path = "/v1/audit",
    operation_id = "list_audit",
    tag = "keys",
    params(Listed),
    responses((status = 200, body = Listing<Entry>)),
)]
async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<Entry>>, Problem> {
    let limit = limit(asked.limit)?;
    let filter = Filter {
        actor: asked.actor.as_deref(),
        action: asked.action.as_deref(),
        subject: asked.subject.as_deref(),
        since: asked.since,
        before: asked.cursor,
        limit: limit + 1,
    };
    let entries = audit::list(&app.pool, filter).await?;
    Ok(Json(Listing::of(entries, limit, |entry| entry.id)))
}
