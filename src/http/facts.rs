//! `/v1/users/{name}/facts`: what is known about the users for whom campaigns work.

use axum::{
    Json, Router,
    routing::{get, post},
};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    input::{Asked, Body, Id, Name, NameAndId},
    page::{Listing, limit, page},
    transaction::begin,
};
use crate::{
    app::App,
    domain::{
        Page,
        audit::{self, Action, Actor},
        campaigns,
        facts::{self, Extraction, Fact, Filter, Forgotten, Hit},
        memory,
        search::Question,
        timestamp,
        transaction::connection,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/extractions", get(extractions))
        .route("/v1/users/{name}/facts", get(list).post(state))
        .route("/v1/users/{name}/facts/search", get(search))
        .route("/v1/users/{name}/facts/{fact}", get(show))
        .route("/v1/users/{name}/facts/{fact}/edit", post(edit))
        .route("/v1/users/{name}/facts/{fact}/revoke", post(revoke))
        .route("/v1/users/{name}/forget", post(forget))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(extractions, list, state, search, show, edit, revoke, forget))]
pub(super) struct Described;

const EXTRACTIONS: i64 = 200;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// Those that hold no more, too.
    ended: Option<bool>,
    /// The id of the last fact that was read.
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Found {
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    q: String,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFact, example = json!({ "attribute": "Diet", "text": "Eats no meat." }))]
struct Statement {
    /// What of the user it is about: one fact of it holds at a time.
    #[schema(min_length = 1, max_length = 100)]
    attribute: String,
    #[schema(min_length = 1, max_length = 400)]
    text: String,
    /// From when on it holds no more.
    #[serde(default, deserialize_with = "timestamp::optional")]
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EditFact)]
struct Edited {
    #[schema(min_length = 1, max_length = 400)]
    text: String,
}

/// Lists the newest readings of sessions of a campaign for facts, with what came of them.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/extractions",
    operation_id = "list_extractions",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign")),
    responses(
        (status = 200, body = Listing<Extraction>),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn extractions(app: App, Id(campaign_id): Id) -> Result<Json<Listing<Extraction>>, Problem> {
    campaigns::get(&app.pool, campaign_id).await?;
    let page = Page { after: None, limit: EXTRACTIONS };
    let read = facts::extractions(&app.pool, campaign_id, page).await?;
    Ok(Json(Listing::of(read, EXTRACTIONS, |extraction| extraction.session_id)))
}

/// Lists the facts about a user, the newest first.
#[utoipa::path(
    get,
    path = "/v1/users/{name}/facts",
    operation_id = "list_facts",
    tag = "memory",
    params(("name" = String, Path, description = "The user"), Listed),
    responses(
        (status = 200, body = Listing<Fact>),
        (status = 422, description = "`bad_user`"),
    ),
)]
async fn list(
    app: App,
    Name(user): Name,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Fact>>, Problem> {
    let limit = limit(asked.limit)?;
    let filter = Filter { with_ended: asked.ended.unwrap_or_default() };
    let (page, now) = (page(asked.cursor, limit), app.clock.now());
    let facts = facts::list(&app.pool, &user, filter, page, now).await?;
    Ok(Json(Listing::of(facts, limit, |fact| fact.id)))
}

/// States a fact about a user. What it contradicts is closed, and stays with its time.
#[utoipa::path(
    post,
    path = "/v1/users/{name}/facts",
    operation_id = "state_fact",
    tag = "memory",
    params(("name" = String, Path, description = "The user")),
    request_body = Statement,
    responses(
        (status = 200, body = Fact),
        (status = 409, description = "`fact_known`, `facts_full`"),
        (status = 422, description = "`bad_user`, `bad_fact`, `expired`"),
    ),
)]
async fn state(
    app: App,
    who: Actor,
    Name(user): Name,
    Body(asked): Body<Statement>,
) -> Result<Json<Fact>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let what = (user.as_str(), asked.attribute.as_str(), asked.text.as_str());
    let (end, by, config) = (asked.expires_at, who.label(), &app.config);
    let settings = (&config.facts, config.memory.language.as_str());
    let fact = facts::state(&mut tx, what, end, &by, settings, now).await?;
    audit::write(&mut *tx, &who, Action::FactState, fact.id, fact.for_audit(), now).await?;
    memory::request_embeddings(&mut tx, &app.config.memory).await?;
    tx.commit().await?;
    Ok(Json(fact))
}

/// Searches what holds of a user by words, the best first.
#[utoipa::path(
    get,
    path = "/v1/users/{name}/facts/search",
    operation_id = "search_facts",
    tag = "memory",
    params(("name" = String, Path, description = "The user"), Found),
    responses(
        (status = 200, body = Listing<Hit>),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`bad_user`, `no_words`, `empty_text`"),
    ),
)]
async fn search(
    app: App,
    Name(user): Name,
    Asked(asked): Asked<Found>,
) -> Result<Json<Listing<Hit>>, Problem> {
    let limit = limit(asked.limit)?;
    let (language, now) = (&app.config.memory.language, app.clock.now());
    let meaning = app.tools.meanings.of_question(&asked.q).await;
    let question = Question { words: &asked.q, limit, meaning: meaning.as_ref() };
    let mut conn = connection(&app.pool).await?;
    let hits = facts::search(&mut conn, &user, question, language, now).await?;
    Ok(Json(Listing::of(hits, i64::MAX, |hit| hit.fact.id)))
}

/// Shows a fact, also one that holds no more.
#[utoipa::path(
    get,
    path = "/v1/users/{name}/facts/{fact}",
    operation_id = "show_fact",
    tag = "memory",
    params(("name" = String, Path, description = "The user"), ("fact" = Uuid, Path)),
    responses(
        (status = 200, body = Fact),
        (status = 404, description = "`unknown_fact`"),
        (status = 422, description = "`bad_user`"),
    ),
)]
async fn show(app: App, NameAndId(user, id): NameAndId) -> Result<Json<Fact>, Problem> {
    Ok(Json(facts::get(&app.pool, &user, id).await?))
}

/// Puts other words in the place of a fact that holds. The older ones stay, with their time.
#[utoipa::path(
    post,
    path = "/v1/users/{name}/facts/{fact}/edit",
    operation_id = "edit_fact",
    tag = "memory",
    params(("name" = String, Path, description = "The user"), ("fact" = Uuid, Path)),
    request_body = Edited,
    responses(
        (status = 200, body = Fact),
        (status = 404, description = "`unknown_fact`"),
        (status = 409, description = "`campaign_closed`, `fact_ended`, `fact_known`, `facts_full`"),
        (status = 422, description = "`bad_user`, `bad_fact`"),
    ),
)]
async fn edit(
    app: App,
    who: Actor,
    NameAndId(user, id): NameAndId,
    Body(asked): Body<Edited>,
) -> Result<Json<Fact>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let (by, config) = (who.label(), &app.config);
    let settings = (&config.facts, config.memory.language.as_str());
    let fact = facts::edit(&mut tx, (&user, id), &asked.text, &by, settings, now).await?;
    audit::write(&mut *tx, &who, Action::FactEdit, id, fact.for_audit(), now).await?;
    memory::request_embeddings(&mut tx, &app.config.memory).await?;
    tx.commit().await?;
    Ok(Json(fact))
}

/// Has a fact hold no more: it is told to nobody and found no more, and can still be shown.
#[utoipa::path(
    post,
    path = "/v1/users/{name}/facts/{fact}/revoke",
    operation_id = "revoke_fact",
    tag = "memory",
    params(("name" = String, Path, description = "The user"), ("fact" = Uuid, Path)),
    responses(
        (status = 200, body = Fact),
        (status = 404, description = "`unknown_fact`"),
        (status = 409, description = "`fact_ended`"),
        (status = 422, description = "`bad_user`"),
    ),
)]
async fn revoke(
    app: App,
    who: Actor,
    NameAndId(user, id): NameAndId,
) -> Result<Json<Fact>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let fact = facts::revoke(&mut tx, &user, id, now).await?;
    audit::write(&mut *tx, &who, Action::FactRevoke, id, fact.for_audit(), now).await?;
    tx.commit().await?;
    Ok(Json(fact))
}

/// Removes all facts about a user, those too that hold no more, for good.
///
/// What was asked up to now is not read for facts any more. What is asked from now on is, in campaigns that go on working for this user.
/// What was said stays where it was said: prompts, transcripts, summaries, records. `sessions` says where to look; erasing a campaign removes it.
#[utoipa::path(
    post,
    path = "/v1/users/{name}/forget",
    operation_id = "forget_user",
    tag = "memory",
    params(("name" = String, Path, description = "The user")),
    responses(
        (status = 200, body = Forgotten),
        (status = 422, description = "`bad_user`"),
    ),
)]
async fn forget(app: App, who: Actor, Name(user): Name) -> Result<Json<Forgotten>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let forgotten = facts::forget(&mut tx, &user, now).await?;
    let data = json!({ "facts": forgotten.facts });
    audit::write(&mut *tx, &who, Action::UserForget, &user, data, now).await?;
    tx.commit().await?;
    Ok(Json(forgotten))
}
