//! `/v1/bulk-actions`: one action on all tasks that match a filter, as a thing that can be looked at while it goes on.

use axum::{
    Json, Router,
    http::{StatusCode, header::LOCATION},
    response::IntoResponse,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Id},
    transaction::{begin, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Actor},
        bulk_actions::{self, Action, BulkAction},
        objects,
        tasks::Matching,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new().route("/v1/bulk-actions", post(create)).route("/v1/bulk-actions/{id}", get(show))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(create, show))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewBulkAction, example = json!({ "action": "cancel", "filter": { "agent": "copywriter" }, "reason": "the brief has changed" }))]
struct New {
    action: Action,
    #[serde(deserialize_with = "objects::object")]
    filter: Matching,
    /// Why, for whoever finds a task cancelled.
    #[serde(default = "super::tasks::by_request")]
    reason: String,
    /// Nothing is done unless exactly so many tasks match.
    expected_count: Option<i64>,
}

/// Cancels or retries all tasks that match a filter. A worker does it.
///
/// Tasks that are added later are not meant. Those that have changed before their turn comes are skipped.
#[utoipa::path(
    post,
    path = "/v1/bulk-actions",
    operation_id = "create_bulk_action",
    tag = "tasks",
    request_body = New,
    responses(
        (status = 202, body = BulkAction, headers(("Location" = String, description = "Where its progress is"))),
        (status = 409, description = "`count_differs`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_filter`, `nul_in_text`"),
    ),
)]
async fn create(app: App, who: Actor, Body(new): Body<New>) -> Result<impl IntoResponse, Problem> {
    let asked = bulk_actions::New {
        action: new.action,
        filter: &new.filter,
        reason: &new.reason,
        expected_count: new.expected_count,
    };
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let action = bulk_actions::request(&mut tx, &asked, now).await?;
    let data = json!({ "action": action.action, "filter": action.filter, "matched": action.matched, "reason": action.reason });
    audit::write(&mut *tx, &who, audit::Action::BulkActionCreate, action.id, data, now).await?;
    commit(tx).await?;
    let location = format!("/v1/bulk-actions/{}", action.id);
    Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(action)))
}

/// Shows how far a bulk action is.
#[utoipa::path(
    get,
    path = "/v1/bulk-actions/{id}",
    operation_id = "show_bulk_action",
    tag = "tasks",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = BulkAction), (status = 404, description = "`unknown_bulk_action`")),
)]
async fn show(app: App, Id(id): Id) -> Result<Json<BulkAction>, Problem> {
    Ok(Json(bulk_actions::get(&app.pool, id).await?))
}
