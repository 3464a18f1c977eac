//! `/v1/webhooks` and `/v1/webhook-deliveries`.

use axum::{
    Json, Router,
    http::StatusCode,
    routing::{get, post},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
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
        transaction::{begin, commit},
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

/// There are a handful: all of them are one page.
#[derive(Serialize)]
struct Webhooks {
    items: Vec<Webhook>,
}

/// The only answers that have a secret in them.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    webhook: Webhook,
    secret: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    url: String,
    #[serde(default)]
    kinds: Vec<Kind>,
    campaign_id: Option<Uuid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotated {
    /// How long the secret before signs, too: at most 30 days.
    #[serde(default = "a_day")]
    overlap_hours: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    since: DateTime<Utc>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    webhook_id: Option<Uuid>,
    task_id: Option<Uuid>,
    state: Option<State>,
    cursor: Option<Uuid>,
    limit: Option<i64>,
}

const MAX_OVERLAP_HOURS: u16 = 30 * 24;

async fn list(app: App) -> Result<Json<Webhooks>, Problem> {
    Ok(Json(Webhooks { items: webhooks::list(&app.pool).await? }))
}

async fn show(app: App, Id(id): Id) -> Result<Json<Webhook>, Problem> {
    Ok(Json(webhooks::get(&app.pool, id).await?))
}

/// The secret is shown in this answer and never again.
async fn add(
    app: App,
    who: Actor,
    Body(asked): Body<Added>,
) -> Result<(StatusCode, Json<Shown>), Problem> {
    let new = New { url: &asked.url, kinds: &asked.kinds, campaign_id: asked.campaign_id };
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let added = webhooks::add(&mut tx, &app.config.webhooks, &new, now).await?;
    let (id, data) =
        (added.webhook.id, json!({ "url": added.webhook.url, "campaign_id": asked.campaign_id }));
    audit::write(&mut *tx, &who, Action::WebhookAdd, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::CREATED, Json(shown(added))))
}

async fn remove(app: App, who: Actor, Id(id): Id) -> Result<StatusCode, Problem> {
    let mut tx = begin(&app.pool).await?;
    webhooks::remove(&mut tx, id).await?;
    audit::write(&mut *tx, &who, Action::WebhookRemove, id, json!({}), app.clock.now()).await?;
    commit(tx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Another secret, in this answer and never again.
async fn rotate(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Rotated { overlap_hours }): Body<Rotated>,
) -> Result<Json<Shown>, Problem> {
    if overlap_hours > MAX_OVERLAP_HOURS {
        let detail =
            format!("overlap_hours is {overlap_hours}, but has to be at most {MAX_OVERLAP_HOURS}");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_field", detail));
    }
    let (overlap, now) = (TimeDelta::hours(overlap_hours.into()), app.clock.now());
    let mut tx = begin(&app.pool).await?;
    let rotated = webhooks::rotate(&mut tx, id, overlap, now).await?;
    let data = json!({ "overlap_hours": overlap_hours });
    audit::write(&mut *tx, &who, Action::WebhookRotate, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(shown(rotated)))
}

async fn enable(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Webhook>, Problem> {
    let mut tx = begin(&app.pool).await?;
    let webhook = webhooks::enable(&mut tx, id).await?;
    audit::write(&mut *tx, &who, Action::WebhookEnable, id, json!({}), app.clock.now()).await?;
    commit(tx).await?;
    Ok(Json(webhook))
}

async fn disable(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<Json<Webhook>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let webhook = webhooks::disable(&mut tx, id, &reason, now).await?;
    let data = json!({ "reason": reason });
    audit::write(&mut *tx, &who, Action::WebhookDisable, id, data, now).await?;
    commit(tx).await?;
    Ok(Json(webhook))
}

/// A worker sends it: the delivery says how it stands.
async fn test(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Delivery>), Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let delivery = webhooks::send_test(&mut tx, id, now).await?;
    let data = json!({ "delivery_id": delivery.id });
    audit::write(&mut *tx, &who, Action::WebhookTest, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

/// Everything of that time on that has not been delivered.
async fn replay_since(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Since { since }): Body<Since>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let n_replayed = webhooks::replay_since(&mut tx, id, since, now).await?;
    let data = json!({ "since": since, "replayed": n_replayed });
    audit::write(&mut *tx, &who, Action::WebhookReplay, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "webhook_id": id, "replayed": n_replayed }))))
}

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

async fn delivery(app: App, Id(id): Id) -> Result<Json<Delivery>, Problem> {
    Ok(Json(webhooks::get_delivery(&app.pool, id).await?))
}

async fn replay(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Delivery>), Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let delivery = webhooks::replay(&mut tx, id, now).await?;
    let (webhook_id, data) = (delivery.webhook_id, json!({ "delivery_id": id }));
    audit::write(&mut *tx, &who, Action::WebhookReplay, webhook_id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(delivery)))
}

fn shown(WithSecret { webhook, secret }: WithSecret) -> Shown {
    Shown { webhook, secret: secret.expose().to_owned() }
}

fn a_day() -> u16 {
    24
}
