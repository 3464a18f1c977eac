//! `/v1/campaigns`.

use axum::{
    Json, Router,
    http::{StatusCode, header::LOCATION},
    response::IntoResponse,
    routing::get,
};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id},
    page::{Listing, limit, page},
    tasks::Reasoned,
};
use crate::{
    app::App,
    domain::{
        amount::Limit,
        audit::{self, Action, Actor},
        campaigns::{self, Campaign, LimitChange, Overview, Status},
        erasures::{self, Erasure},
        transaction::{begin, commit},
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/campaigns", get(list).post(create))
        .route("/v1/campaigns/{id}", get(show).patch(change))
        .route("/v1/campaigns/{id}/erasure", get(erasure).post(erase))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
    #[serde(default)]
    brief: String,
    client_context: Option<String>,
    #[serde(default)]
    budget: Limit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    cursor: Option<Uuid>,
    limit: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    status: Option<Status>,
    /// Why it is paused, for whoever finds it paused.
    #[serde(default)]
    reason: String,
    #[serde(default)]
    budget: Limits,
}

/// A limit that is not named stays; one that is null goes.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    #[serde(deserialize_with = "named")]
    micros: Option<Option<i64>>,
    #[serde(deserialize_with = "named")]
    tokens: Option<Option<i64>>,
}

async fn create(app: App, who: Actor, Body(new): Body<New>) -> Result<impl IntoResponse, Problem> {
    let mut tx = begin(&app.pool).await?;
    let new = campaigns::New {
        name: &new.name,
        brief: &new.brief,
        client_context: new.client_context.as_deref(),
        limit: new.budget,
    };
    let campaign = campaigns::create(&mut tx, &new, app.clock.now()).await?;
    let (id, data) = (campaign.id, json!({ "name": campaign.name }));
    audit::write(&mut *tx, &who, Action::CampaignCreate, id, data, app.clock.now()).await?;
    let overview = campaigns::overview(&mut tx, id).await?;
    commit(tx).await?;
    let location = format!("/v1/campaigns/{}", campaign.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(overview)))
}

async fn list(app: App, Asked(asked): Asked<Listed>) -> Result<Json<Listing<Campaign>>, Problem> {
    let limit = limit(asked.limit)?;
    let campaigns = campaigns::list(&app.pool, page(asked.cursor, limit)).await?;
    Ok(Json(Listing::of(campaigns, limit, |campaign| campaign.id)))
}

async fn show(app: App, Id(id): Id) -> Result<Json<Overview>, Problem> {
    let mut tx = begin(&app.pool).await?;
    Ok(Json(campaigns::overview(&mut tx, id).await?))
}

async fn change(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(change): Body<Change>,
) -> Result<Json<Overview>, Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    if let Some(status) = change.status {
        campaigns::change_status(&mut tx, id, status, &change.reason, now).await?;
        let data = json!({ "reason": change.reason });
        audit::write(&mut *tx, &who, Action::of_status(status), id, data, now).await?;
    }
    let limits = LimitChange { micros: change.budget.micros, tokens: change.budget.tokens };
    if limits != LimitChange::default() {
        let budget = campaigns::change_limit(&mut tx, id, limits).await?;
        let data = json!({ "limit": budget.limit });
        audit::write(&mut *tx, &who, Action::CampaignLimit, id, data, now).await?;
    }
    let overview = campaigns::overview(&mut tx, id).await?;
    commit(tx).await?;
    Ok(Json(overview))
}

/// Asking again gives the same receipt.
async fn erase(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<(StatusCode, Json<Erasure>), Problem> {
    let (mut tx, now) = (begin(&app.pool).await?, app.clock.now());
    let receipt = erasures::request(&mut tx, id, &reason, now).await?;
    let data = json!({ "receipt": receipt.id });
    audit::write(&mut *tx, &who, Action::CampaignErase, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

async fn erasure(app: App, Id(id): Id) -> Result<Json<Erasure>, Problem> {
    let mut tx = begin(&app.pool).await?;
    Ok(Json(erasures::get(&mut tx, id).await?))
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
