//! `/v1/campaigns`.

use axum::{
    Json, Router,
    http::{StatusCode, header::LOCATION},
    response::IntoResponse,
    routing::{get, patch, post},
};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::{
    Front, Problem,
    input::{Body, Id},
    tasks::Reasoned,
    transaction::{begin, begin_read, commit},
};
use crate::{
    app::App,
    domain::{
        amount::Limit,
        audit::{self, Action, Actor},
        campaign_control,
        campaign_overview::{self, Overview},
        campaigns::{self, LimitChange, Status},
        erasures::{self, Erasure},
        objects,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/campaigns", post(create))
        .route("/v1/campaigns/{id}", patch(change))
        .route("/v1/campaigns/{id}/erasure", get(erasure).post(erase))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(create, change, erase, erasure))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewCampaign, example = json!({ "name": "Harbour", "brief": "A song in ten parts.", "budget": { "tokens": 200000 } }))]
struct New {
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    #[serde(default)]
    brief: String,
    client_context: Option<String>,
    #[serde(default, deserialize_with = "objects::object")]
    budget: Limit,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CampaignChange)]
struct Change {
    status: Option<Status>,
    /// Why it is paused, for whoever finds it paused.
    #[serde(default)]
    reason: String,
    #[serde(default, deserialize_with = "objects::object")]
    budget: Limits,
}

/// A limit that is not named stays; one that is null goes.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = LimitChange)]
struct Limits {
    #[serde(deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    micros: Option<Option<i64>>,
    #[serde(deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    tokens: Option<Option<i64>>,
}

/// Creates a campaign.
#[utoipa::path(
    post,
    path = "/v1/campaigns",
    operation_id = "create_campaign",
    tag = "campaigns",
    request_body = New,
    responses(
        (status = 201, body = Overview, headers(("Location" = String, description = "Where the campaign is"))),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_text`, `nul_in_text`, `bad_value`"),
    ),
)]
async fn create(app: App, who: Actor, Body(new): Body<New>) -> Result<impl IntoResponse, Problem> {
    let mut tx = begin(&app).await?;
    let new = campaigns::New {
        name: &new.name,
        brief: &new.brief,
        client_context: new.client_context.as_deref(),
        limit: new.budget,
    };
    let campaign = campaigns::create(&mut tx, &new, app.clock.now()).await?;
    let (id, data) = (campaign.id, json!({ "name": campaign.name }));
    audit::write(&mut *tx, &who, Action::CampaignCreate, id, data, app.clock.now()).await?;
    let overview = campaign_overview::overview(&mut tx, id).await?;
    commit(tx).await?;
    let location = format!("/v1/campaigns/{}", campaign.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(overview)))
}

/// Pauses, resumes or closes a campaign, and changes what it may cost.
///
/// Paused, it takes tasks in and starts none; closed, it takes no more, and those that wait still run.
#[utoipa::path(
    patch,
    path = "/v1/campaigns/{id}",
    operation_id = "change_campaign",
    tag = "campaigns",
    params(("id" = Uuid, Path)),
    request_body = Change,
    responses(
        (status = 200, body = Overview),
        (status = 404, description = "`unknown_campaign`"),
        (status = 409, description = "`campaign_closed`"),
        (status = 422, description = "`nul_in_text`, `bad_value`, `bad_argument`"),
    ),
)]
async fn change(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(change): Body<Change>,
) -> Result<Json<Overview>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    if let Some(status) = change.status {
        campaign_control::change_status(&mut tx, id, status, &change.reason, now).await?;
        let data = json!({ "reason": change.reason });
        audit::write(&mut *tx, &who, campaign_control::action(status), id, data, now).await?;
    }
    let limits = LimitChange { micros: change.budget.micros, tokens: change.budget.tokens };
    if limits != LimitChange::default() {
        let budget = campaigns::change_limit(&mut tx, id, limits).await?;
        let data = json!({ "limit": budget.limit });
        audit::write(&mut *tx, &who, Action::CampaignLimit, id, data, now).await?;
    }
    let overview = campaign_overview::overview(&mut tx, id).await?;
    commit(tx).await?;
    Ok(Json(overview))
}

/// Erases what was said in a campaign; what it has cost stays.
///
/// A worker does it. Asking again gives the same receipt.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/erasure",
    operation_id = "erase_campaign",
    tag = "campaigns",
    params(("id" = Uuid, Path)),
    request_body = Reasoned,
    responses((status = 202, body = Erasure), (status = 404, description = "`unknown_campaign`"), (status = 409, description = "`task_requeued`, `task_ended`"), (status = 413, description = "`text_too_long`"), (status = 422, description = "`empty_text`, `nul_in_text`, `bad_argument`")),
)]
async fn erase(
    app: App,
    who: Actor,
    Id(id): Id,
    Body(Reasoned { reason }): Body<Reasoned>,
) -> Result<(StatusCode, Json<Erasure>), Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let receipt = erasures::request(&mut tx, id, &reason, now).await?;
    let data = json!({ "receipt": receipt.id });
    audit::write(&mut *tx, &who, Action::CampaignErase, id, data, now).await?;
    commit(tx).await?;
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

/// Shows the receipt of an erasure.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/erasure",
    operation_id = "show_erasure",
    tag = "campaigns",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Erasure), (status = 404, description = "`not_erased`, `unknown_campaign`")),
)]
async fn erasure(app: App, Id(id): Id) -> Result<Json<Erasure>, Problem> {
    let mut tx = begin_read(&app).await?;
    Ok(Json(erasures::get(&mut tx, id).await?))
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
