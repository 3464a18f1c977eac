//! `/v1/keys`.

use axum::{
    Json, Router,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, HeaderName},
    },
    routing::{get, post},
};
use chrono::TimeDelta;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    tasks::Nothing,
    transaction::{begin, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        keys::{self, Key, Made, New, Scope},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/keys", get(list).post(create))
        .route("/v1/keys/{id}/rotate", post(rotate))
        .route("/v1/keys/{id}/revoke", post(revoke))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, create, rotate, revoke))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey, example = json!({ "name": "shop", "scopes": ["enqueue"] }))]
struct Wanted {
    name: String,
    scopes: Vec<Scope>,
    /// The campaigns that it is bound to, at most 100: it reaches nothing else. All, if they are left out.
    #[schema(min_items = 1, max_items = 100)]
    campaigns: Option<Vec<Uuid>>,
    /// Never, if it is left out.
    expires_in_secs: Option<u32>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyRotation)]
struct Rotation {
    /// How long the old key still holds.
    #[serde(default = "a_day")]
    overlap_secs: u32,
}

/// The only answer that has the text of a key in it; no cache may keep it.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = ShownKey)]
struct Shown {
    #[serde(flatten)]
    key: Key,
    secret: String,
}

type Answer = (StatusCode, [(HeaderName, &'static str); 1], Json<Shown>);

/// Lists the keys, the newest first.
#[utoipa::path(
    get,
    path = "/v1/keys",
    operation_id = "list_keys",
    tag = "keys",
    params(Listed),
    responses((status = 200, body = Listing<Key>)),
)]
async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<Key>>, Problem> {
    let limit = limit(asked.limit)?;
    let keys = keys::list(&app.pool, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(keys, limit, |key| key.id)))
}

/// Makes a key. Its text is in this answer and nowhere else.
#[utoipa::path(
    post,
    path = "/v1/keys",
    operation_id = "create_key",
    tag = "keys",
    request_body = Wanted,
    responses((status = 201, body = Shown), (status = 404, description = "`unknown_campaign`"), (status = 409, description = "`key_name_taken`"), (status = 422, description = "`key_expired`, `bad_value`, `nul_in_text`")),
)]
async fn create(app: App, who: Actor, Body(wanted): Body<Wanted>) -> Result<Answer, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let life = wanted.expires_in_secs.map(|secs| TimeDelta::seconds(secs.into()));
    let new = New {
        name: &wanted.name,
        scopes: &wanted.scopes,
        campaigns: wanted.campaigns.as_deref(),
        created_by: &who.label(),
        expires_at: life.map(|life| now + life),
    };
    let made = keys::create(&mut tx, &new, now).await?;
    let Key { name, scopes, campaigns, .. } = &made.key;
    let data = json!({ "name": name, "scopes": scopes, "campaigns": campaigns });
    audit::write(&mut *tx, &who, Action::KeyCreate, made.key.id, data, now).await?;
    commit(tx).await?;
    Ok(answer(made))
}

/// Makes the successor of a key, and lets the old one hold for a while.
#[utoipa::path(
    post,
    path = "/v1/keys/{id}/rotate",
    operation_id = "rotate_key",
    tag = "keys",
    params(("id" = Uuid, Path)),
    request_body = Rotation,
    responses((status = 201, body = Shown), (status = 404, description = "`unknown_key`"), (status = 409, description = "`key_revoked`, `key_replaced`, `key_name_taken`")),
)]
async fn rotate(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Rotation { overlap_secs }): Body<Rotation>,
) -> Result<Answer, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let overlap = TimeDelta::seconds(overlap_secs.into());
    let made = keys::rotate(&mut tx, id, overlap, &who.label(), now).await?;
    let data =
        json!({ "name": made.key.name, "successor": made.key.id, "overlap_secs": overlap_secs });
    audit::write(&mut *tx, &who, Action::KeyRotate, id, data, now).await?;
    commit(tx).await?;
    Ok(answer(made))
}

/// Ends a key: it is refused within seconds, by all processes.
#[utoipa::path(
    post,
    path = "/v1/keys/{id}/revoke",
    operation_id = "revoke_key",
    tag = "keys",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses((status = 200, body = Key), (status = 404, description = "`unknown_key`")),
)]
async fn revoke(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Key>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let (key, is_news) = keys::revoke(&mut tx, id, now).await?;
    if is_news {
        let data = json!({ "name": key.name });
        audit::write(&mut *tx, &who, Action::KeyRevoke, id, data, now).await?;
    }
    commit(tx).await?;
    Ok(Json(key))
}

fn answer(Made { key, text }: Made) -> Answer {
    let shown = Shown { key, secret: text.expose_secret().to_owned() };
    (StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(shown))
}

fn a_day() -> u32 {
    86_400
}
