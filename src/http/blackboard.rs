//! `/v1/campaigns/{id}/blackboard`.

use axum::{Json, Router, routing::get};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id},
    page::{Listing, limit},
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        blackboard::{self, Blackboard, By, Change, Entry, Written},
        campaigns,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/blackboard", get(show).put(set).patch(patch))
        .route("/v1/campaigns/{id}/blackboard/history", get(history))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(show, set, patch, history))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// An earlier version; else the current one.
    #[param(minimum = 0)]
    version: Option<i64>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// A version.
    cursor: Option<i64>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BlackboardSet)]
struct Set {
    #[schema(value_type = Object)]
    document: Value,
    /// The version that it replaces; 0 where nobody has written anything yet.
    expected_version: i64,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BlackboardPatch, example = json!({ "patch": { "plan": { "parts": 9, "draft": null } } }))]
struct Patch {
    /// A JSON Merge Patch (RFC 7396): null removes a key.
    #[schema(value_type = Object)]
    patch: Value,
    /// If it is to be merged into that version and no other.
    expected_version: Option<i64>,
}

/// Shows the blackboard of a campaign.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/blackboard",
    operation_id = "show_blackboard",
    tag = "campaigns",
    params(("id" = Uuid, Path), Shown),
    responses(
        (status = 200, body = Blackboard),
        (status = 404, description = "`unknown_campaign`, `unknown_version`"),
    ),
)]
async fn show(
    app: App,
    Id(id): Id,
    Asked(asked): Asked<Shown>,
) -> Result<Json<Blackboard>, Problem> {
    let mut tx = begin_read(&app).await?;
    campaigns::get(&mut *tx, id).await?;
    Ok(Json(match asked.version {
        None => blackboard::get(&mut *tx, id).await?,
        Some(version) => blackboard::at_version(&mut tx, id, version).await?,
    }))
}

/// Sets the document in place of the version that is named.
///
/// At another version it is refused, and the detail of the problem names that one.
#[utoipa::path(
    put,
    path = "/v1/campaigns/{id}/blackboard",
    operation_id = "set_blackboard",
    tag = "campaigns",
    params(("id" = Uuid, Path)),
    request_body = Set,
    responses(
        (status = 200, body = Written),
        (status = 404, description = "`unknown_campaign`"),
        (status = 409, description = "`blackboard_changed`, `campaign_closed`"),
        (status = 413, description = "`blackboard_too_large`"),
        (status = 422, description = "`no_object`, `bad_key`, `nul_in_text`"),
    ),
)]
async fn set(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Set { document, expected_version }): Body<Set>,
) -> Result<Json<Written>, Problem> {
    let change = Change::Set { document: &document, expected_version };
    write(&app, &who, id, &change, Action::BlackboardSet).await
}

/// Merges a patch into the document.
#[utoipa::path(
    patch,
    path = "/v1/campaigns/{id}/blackboard",
    operation_id = "patch_blackboard",
    tag = "campaigns",
    params(("id" = Uuid, Path)),
    request_body = Patch,
    responses(
        (status = 200, body = Written),
        (status = 404, description = "`unknown_campaign`"),
        (status = 409, description = "`blackboard_changed`, `campaign_closed`"),
        (status = 413, description = "`blackboard_too_large`"),
        (status = 422, description = "`no_object`, `bad_key`, `nul_in_text`"),
    ),
)]
async fn patch(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Patch { patch, expected_version }): Body<Patch>,
) -> Result<Json<Written>, Problem> {
    let change = Change::Patch { patch: &patch, expected_version };
    write(&app, &who, id, &change, Action::BlackboardPatch).await
}

/// Lists the changes of a blackboard, the newest first.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/blackboard/history",
    operation_id = "list_blackboard_changes",
    tag = "campaigns",
    params(("id" = Uuid, Path), Listed),
    responses(
        (status = 200, body = Listing<Entry>),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn history(
    app: App,
    Id(id): Id,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Entry>>, Problem> {
    let limit = limit(asked.limit)?;
    campaigns::get(&app.pool, id).await?;
    let entries = blackboard::history(&app.pool, id, asked.cursor, limit + 1).await?;
    Ok(Json(Listing::of(entries, limit, |entry| entry.version)))
}

async fn write(
    app: &App,
    who: &Actor,
    id: Uuid,
    change: &Change<'_>,
    action: Action,
) -> Result<Json<Written>, Problem> {
    let (mut tx, now) = (begin(app).await?, app.clock.now());
    let by = By::Operator { label: &who.label() };
    let written = blackboard::change(&mut tx, id, change, &by, now).await?;
    // What says the same again is no change, and leaves no line.
    if written.changed {
        let data = json!({ "version": written.blackboard.version });
        audit::write(&mut *tx, who, action, id, data, now).await?;
    }
    commit(tx).await?;
    Ok(Json(written))
}
