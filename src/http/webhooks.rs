//! `/v1/webhooks` and `/v1/webhook-deliveries`.

use axum::{
    Json, Router,
    http::{HeaderName, StatusCode, header::CACHE_CONTROL},
    routing::{get, post},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    tasks::{Nothing, Reasoned},
    transaction::{begin, begin_several, commit},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        timestamp,
        webhooks::{self, Delivery, Filter, Kind, New, State, Webhook, WithSecret},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/webhooks", get(list).post(add))
        .route("/v1/webhooks/{id}", get(show).delete(remove))
        .route("/v1/webhooks/{id}/rotate", post(rotate))
        .route("/v1/webhooks/{id}/enable", post(enable))
        .route("/v1/webhooks/{id}/disable", post(disable))
        .route("/v1/webhooks/{id}/test", post(test))
        .route("/v1/webhooks/{id}/replay", post(replay_since))
        .route("/v1/webhook-deliveries", get(deliveries))
        .route("/v1/webhook-deliveries/{id}", get(delivery))
        .route("/v1/webhook-deliveries/{id}/replay", post(replay))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    list,
    show,
    add,
    remove,
    rotate,
    enable,
    disable,
    test,
    replay_since,
    deliveries,
    delivery,
    replay
))]
pub(super) struct Described;

/// There are a handful: all of them are one page.
#[derive(Serialize, utoipa::ToSchema)]
struct Webhooks {
    items: Vec<Webhook>,
}

/// The only answers that have a secret in them; no cache may keep them.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = WebhookWithSecret)]
struct Shown {
    #[serde(flatten)]
    webhook: Webhook,
    secret: String,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook, example = json!({ "url": "https://shop.example/hooks/dalsegno", "kinds": ["task.done"] }))]
struct Added {
    url: String,
    #[serde(default)]
    kinds: Vec<Kind>,
    campaign_id: Option<Uuid>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SecretRotation)]
struct Rotated {
    /// How long the secret before signs, too: at most 30 days.
    #[serde(default = "a_day")]
    #[schema(maximum = 720)]
    overlap_hours: u16,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReplaySince)]
struct Since {
    #[serde(deserialize_with = "timestamp::required")]
    since: DateTime<Utc>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    webhook_id: Option<Uuid>,
    task_id: Option<Uuid>,
    #[param(inline)]
    state: Option<State>,
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ReplayedMany {
    webhook_id: Uuid,
    replayed: usize,
}

type Answer = ([(HeaderName, &'static str); 1], Json<Shown>);

const MAX_OVERLAP_HOURS: u16 = 30 * 24;

/// Lists all webhooks. Nobody can see their secrets again.
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    operation_id = "list_webhooks",
    tag = "webhooks",
    responses((status = 200, body = Webhooks)),
)]
async fn list(app: App) -> Result<Json<Webhooks>, Problem> {
    Ok(Json(Webhooks { items: webhooks::list(&app.pool).await? }))
}

/// Shows a webhook.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}",
    operation_id = "show_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Webhook), (status = 404, description = "`unknown_webhook`")),
)]
async fn show(app: App, Id(id): Id) -> Result<Json<Webhook>, Problem> {
    Ok(Json(webhooks::get(&app.pool, id).await?))
}

/// Has an address told of the ends of tasks. The secret is shown in this answer and never again.
#[utoipa::path(
    post,
    path = "/v1/webhooks",
    operation_id = "add_webhook",
    tag = "webhooks",
    request_body = Added,
    responses((status = 201, body = Shown), (status = 404, description = "`unknown_campaign`"), (status = 422, description = "`bad_webhook_url`, `nul_in_text`, `bad_value`")),
)]
async fn add(
    app: App,
    who: Actor,
    Body(asked): Body<Added>,
) -> Result<(StatusCode, Answer), Problem> {
    let new = New { url: &asked.url, kinds: &asked.kinds, campaign_id: asked.campaign_id };
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let added = webhooks::add(&mut tx, &app.config.webhooks, &new, now).await?;
    let (id, data) =
        (added.webhook.id, json!({ "url": added.webhook.url, "campaign_id": asked.campaign_id }));
    audit::write(&mut *tx, &who, Action::WebhookAdd, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::CREATED, answer(added)))
}

/// Removes a webhook with its deliveries.
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{id}",
    operation_id = "remove_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is gone"), (status = 404, description = "`unknown_webhook`")),
)]
async fn remove(app: App, who: Actor, Id(id): Id) -> Result<StatusCode, Problem> {
    webhooks::remove(&begin_several(&app).await?, &who, id, app.clock.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Another secret, in this answer and never again; the one before signs too for a while.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/rotate",
    operation_id = "rotate_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Rotated,
    responses((status = 200, body = Shown), (status = 404, description = "`unknown_webhook`")),
)]
async fn rotate(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Rotated { overlap_hours }): Body<Rotated>,
) -> Result<Answer, Problem> {
    if overlap_hours > MAX_OVERLAP_HOURS {
        let detail =
            format!("overlap_hours is {overlap_hours}, but has to be at most {MAX_OVERLAP_HOURS}");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_field", detail));
    }
    let (overlap, now) = (TimeDelta::hours(overlap_hours.into()), app.clock.now());
    let mut tx = begin(&app).await?;
    let rotated = webhooks::rotate(&mut tx, id, overlap, now).await?;
    let data = json!({ "overlap_hours": overlap_hours });
    audit::write(&mut *tx, &who, Action::WebhookRotate, id, data, now).await?;
    commit(tx).await?;
    Ok(answer(rotated))
}

/// Sends again what happens from now on. What happened meanwhile can be replayed.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/enable",
    operation_id = "enable_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses((status = 200, body = Webhook), (status = 404, description = "`unknown_webhook`")),
)]
async fn enable(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Webhook>, Problem> {
    let mut tx = begin(&app).await?;
    let webhook = webhooks::enable(&mut tx, id).await?;
    audit::write(&mut *tx, &who, Action::WebhookEnable, id, json!({}), app.clock.now()).await?;
    commit(tx).await?;
    Ok(Json(webhook))
}

/// Sends nothing more until it is enabled.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/disable",
    operation_id = "disable_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Reasoned,
    responses((status = 200, body = Webhook), (status = 404, description = "`unknown_webhook`"), (status = 422, description = "`nul_in_text`")),
)]
async fn disable(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Webhook>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let webhook = webhooks::disable(&mut tx, id, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::WebhookDisable, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(webhook))
}

/// Has a worker send an event that says that it is a test: the delivery says how it stands.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/test",
    operation_id = "test_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses((status = 202, body = Delivery), (status = 404, description = "`unknown_webhook`"), (status = 409, description = "`webhook_disabled`")),
)]
async fn test(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Delivery>), Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let delivery = webhooks::send_test(&mut tx, id, now).await?;
    let data = json!({ "delivery_id": delivery.id });
    audit::write(&mut *tx, &who, Action::WebhookTest, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

/// Sends everything of that time on that has not been delivered.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/replay",
    operation_id = "replay_webhook",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Since,
    responses((status = 202, body = ReplayedMany), (status = 404, description = "`unknown_webhook`"), (status = 409, description = "`webhook_disabled`")),
)]
async fn replay_since(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Since { since }): Body<Since>,
) -> Result<(StatusCode, Json<ReplayedMany>), Problem> {
    let transactions = begin_several(&app).await?;
    let n_replayed =
        webhooks::replay_since(&transactions, &who, id, since, app.clock.now()).await?;
    Ok((StatusCode::ACCEPTED, Json(ReplayedMany { webhook_id: id, replayed: n_replayed })))
}

/// Lists deliveries, the newest first.
#[utoipa::path(
    get,
    path = "/v1/webhook-deliveries",
    operation_id = "list_deliveries",
    tag = "webhooks",
    params(Listed),
    responses((status = 200, body = Listing<Delivery>)),
)]
async fn deliveries(
    app: App,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Delivery>>, Problem> {
    let Listed { webhook_id, task_id, state, cursor, .. } = asked;
    let limit = limit(asked.limit)?;
    let filter = Filter { webhook_id, task_id, state };
    let rows = webhooks::deliveries(&app.pool, filter, page(cursor, limit)).await?;
    Ok(Json(Listing::of(rows, limit, |delivery| delivery.id)))
}

/// Shows a delivery.
#[utoipa::path(
    get,
    path = "/v1/webhook-deliveries/{id}",
    operation_id = "show_delivery",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Delivery), (status = 404, description = "`unknown_delivery`")),
)]
async fn delivery(app: App, Id(id): Id) -> Result<Json<Delivery>, Problem> {
    Ok(Json(webhooks::get_delivery(&app.pool, id).await?))
}

/// Sends a delivery again, under the same id.
#[utoipa::path(
    post,
    path = "/v1/webhook-deliveries/{id}/replay",
    operation_id = "replay_delivery",
    tag = "webhooks",
    params(("id" = Uuid, Path)),
    request_body = Nothing,
    responses((status = 202, body = Delivery), (status = 404, description = "`unknown_delivery`"), (status = 409, description = "`webhook_disabled`")),
)]
async fn replay(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Delivery>), Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let delivery = webhooks::replay(&mut tx, id, now).await?;
    let (webhook_id, data) = (delivery.webhook_id, json!({ "delivery_id": id }));
    audit::write(&mut *tx, &who, Action::WebhookReplay, webhook_id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

fn answer(WithSecret { webhook, secret }: WithSecret) -> Answer {
    let shown = Shown { webhook, secret: secret.expose().to_owned() };
    ([(CACHE_CONTROL, "no-store")], Json(shown))
}

fn a_day() -> u16 {
    24
}
