//! `/v1/campaigns/{id}/memory`: edicts, records and journals. Whoever has a key is an operator here.

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
    input::{Asked, Body, Id, IdAndItem},
    page::{Listing, limit, page},
    transaction::{begin, begin_read},
};
use crate::{
    app::App,
    domain::{
        audit::{self, Action, Actor},
        campaigns,
        memory::{
            self, Document, Entry, Filter, Hit, Imported, Item, Kind, New, Version, Who, Written,
        },
        posts,
        search::Question,
        timestamp,
    },
};

pub(super) fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/campaigns/{id}/memory", get(list).post(publish))
        .route("/v1/campaigns/{id}/memory/search", get(search))
        .route("/v1/campaigns/{id}/memory/export", get(export))
        .route("/v1/campaigns/{id}/memory/import", post(import))
        .route("/v1/campaigns/{id}/memory/{item}", get(show))
        .route("/v1/campaigns/{id}/memory/{item}/versions", get(versions))
        .route("/v1/campaigns/{id}/memory/{item}/revoke", post(revoke))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, publish, search, export, import, show, versions, revoke))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    #[param(inline)]
    kind: Option<Kind>,
    /// Only the journal of this agent; `curator_2` and `curator/2` are instance 2 of curator.
    owner: Option<String>,
    /// Those that were revoked or have expired, too.
    ended: Option<bool>,
    /// The id of the last item that was read.
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
    #[param(inline)]
    kind: Option<Kind>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Exported {
    /// The id of the last item that was read.
    cursor: Option<Uuid>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// An earlier version; else the current one.
    #[param(minimum = 1)]
    version: Option<i32>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMemoryItem, example = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Write short sentences." }))]
struct Publication {
    kind: Kind,
    /// Whose journal; of edicts and records nobody's.
    owner: Option<String>,
    /// As agents are called: `tone-of-voice`. Only an entry of a journal may do without one.
    #[schema(max_length = 64)]
    name: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    #[schema(min_length = 1)]
    body: String,
    /// From when on it holds no more.
    #[serde(default, deserialize_with = "timestamp::optional")]
    expires_at: Option<DateTime<Utc>>,
    /// The version that it replaces; 0 where there is to be none yet.
    expected_version: Option<i32>,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MemoryImport)]
struct Import {
    #[schema(max_items = 2000)]
    items: Vec<ImportedItem>,
    /// Whether items that say something else already get a new version. Without it, they are refused.
    #[serde(default)]
    replace: bool,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ImportedMemoryItem)]
struct ImportedItem {
    kind: Kind,
    owner: Option<String>,
    #[schema(max_length = 64)]
    name: String,
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    #[schema(min_length = 1)]
    body: String,
    #[serde(default, deserialize_with = "timestamp::optional")]
    expires_at: Option<DateTime<Utc>>,
}

/// Lists what the memory of a campaign holds, the newest first, without the texts.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/memory",
    operation_id = "list_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), Listed),
    responses(
        (status = 200, body = Listing<Item>),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn list(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    Asked(asked): Asked<Listed>,
) -> Result<Json<Listing<Item>>, Problem> {
    let limit = limit(asked.limit)?;
    campaigns::get(&app.pool, campaign_id).await?;
    let owner = asked.owner.as_deref().map(|written| owner(&app, written));
    let filter = Filter {
        kind: asked.kind,
        owner: owner.as_deref(),
        with_ended: asked.ended.unwrap_or_default(),
    };
    let (page, now) = (page(asked.cursor, limit), app.clock.now());
    let by = Who::Operator { label: &who.label() };
    let items = memory::list(&app.pool, campaign_id, filter, &by, page, now).await?;
    Ok(Json(Listing::of(items, limit, |item| item.id)))
}

/// Publishes an item, or the next version of the one that has its kind, owner and name.
///
/// Where it says the same already, nothing changes. An entry of a journal is never replaced.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/memory",
    operation_id = "publish_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign")),
    request_body = Publication,
    responses(
        (status = 200, body = Written),
        (status = 404, description = "`unknown_campaign`, `unknown_item`"),
        (status = 409, description = "`campaign_closed`, `item_changed`, `entry_written`, `too_many_versions`, `too_many_edicts`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`bad_item_name`, `bad_title`, `bad_owner`, `expired`, `empty_text`, `nul_in_text`"),
    ),
)]
async fn publish(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    Body(asked): Body<Publication>,
) -> Result<Json<Written>, Problem> {
    let owner = asked.owner.as_deref().map(|written| owner(&app, written));
    let new = New {
        kind: asked.kind,
        owner: owner.as_deref(),
        name: asked.name.as_deref(),
        title: &asked.title,
        body: &asked.body,
        expires_at: asked.expires_at,
        expected_version: asked.expected_version,
        is_imported: false,
    };
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let by = Who::Operator { label: &who.label() };
    let written = memory::publish(&mut tx, campaign_id, &new, &by, &app.config.memory, now).await?;
    // What says the same again is no change, and leaves no line.
    if written.changed {
        let data = written.item.for_audit();
        audit::write(&mut *tx, &who, Action::MemoryPublish, campaign_id, data, now).await?;
    }
    tx.commit().await?;
    Ok(Json(written))
}

/// Searches the memory of a campaign by words, the best first.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/memory/search",
    operation_id = "search_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), Found),
    responses(
        (status = 200, body = Listing<Hit>),
        (status = 404, description = "`unknown_campaign`"),
        (status = 413, description = "`text_too_long`"),
        (status = 422, description = "`empty_text`, `no_words`"),
    ),
)]
async fn search(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    Asked(asked): Asked<Found>,
) -> Result<Json<Listing<Hit>>, Problem> {
    let limit = limit(asked.limit)?;
    let meaning = app.tools.meanings.of_question(&asked.q).await;
    let mut tx = begin_read(&app).await?;
    campaigns::get(&mut *tx, campaign_id).await?;
    let question = Question { words: &asked.q, limit, meaning: meaning.as_ref() };
    let (by, now) = (Who::Operator { label: &who.label() }, app.clock.now());
    let (place, config) = ((campaign_id, asked.kind), &app.config.memory);
    let hits = memory::search(&mut tx, place, question, &by, config, now).await?;
    // Ranks are no place to go on from: whoever wants more asks for more, or for something else.
    Ok(Json(Listing::of(hits, limit, |hit| hit.item.id)))
}

/// Reads whole items for a copy elsewhere, in the order in which they were first written.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/memory/export",
    operation_id = "export_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), Exported),
    responses(
        (status = 200, body = Listing<Item>),
        (status = 404, description = "`unknown_campaign`"),
    ),
)]
async fn export(
    app: App,
    Id(campaign_id): Id,
    Asked(asked): Asked<Exported>,
) -> Result<Json<Listing<Item>>, Problem> {
    let limit = limit(asked.limit)?;
    campaigns::get(&app.pool, campaign_id).await?;
    let (page, now) = (page(asked.cursor, limit), app.clock.now());
    let items = memory::page_of_whole(&app.pool, campaign_id, page, now).await?;
    Ok(Json(Listing::of(items, limit, |item| item.id)))
}

/// Takes many items in: all of them, or none and everything that is wrong with them.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/memory/import",
    operation_id = "import_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign")),
    request_body = Import,
    responses(
        (status = 200, body = Imported),
        (status = 404, description = "`unknown_campaign`"),
        (status = 409, description = "`campaign_closed`"),
        (status = 422, description = "`bad_items`"),
    ),
)]
async fn import(
    app: App,
    who: Actor,
    Id(campaign_id): Id,
    Body(asked): Body<Import>,
) -> Result<Json<Imported>, Problem> {
    let entries: Vec<Entry> = asked
        .items
        .into_iter()
        .enumerate()
        .map(|(number, item)| item.into_entry(number, &app))
        .collect();
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let (by, config) = (Who::Operator { label: &who.label() }, &app.config.memory);
    let imported =
        memory::import(&mut tx, campaign_id, &entries, asked.replace, &by, config, now).await?;
    if imported.created + imported.replaced > 0 {
        let data = json!({ "created": imported.created, "replaced": imported.replaced });
        audit::write(&mut *tx, &who, Action::MemoryImport, campaign_id, data, now).await?;
    }
    tx.commit().await?;
    Ok(Json(imported))
}

/// Shows an item, also one that was revoked or has expired.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/memory/{item}",
    operation_id = "show_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), ("item" = Uuid, Path), Shown),
    responses(
        (status = 200, body = Item),
        (status = 404, description = "`unknown_item`, `unknown_version`"),
    ),
)]
async fn show(
    app: App,
    IdAndItem(campaign_id, id): IdAndItem,
    Asked(asked): Asked<Shown>,
) -> Result<Json<Item>, Problem> {
    let mut tx = begin_read(&app).await?;
    let item = memory::get(&mut tx, campaign_id, id).await?;
    Ok(Json(match asked.version {
        None => item,
        Some(version) => memory::at_version(&mut tx, item, version).await?,
    }))
}

/// Lists all versions of an item, the newest first.
#[utoipa::path(
    get,
    path = "/v1/campaigns/{id}/memory/{item}/versions",
    operation_id = "list_memory_versions",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), ("item" = Uuid, Path)),
    responses(
        (status = 200, body = Listing<Version>),
        (status = 404, description = "`unknown_item`"),
    ),
)]
async fn versions(
    app: App,
    IdAndItem(campaign_id, id): IdAndItem,
) -> Result<Json<Listing<Version>>, Problem> {
    let mut tx = begin_read(&app).await?;
    let item = memory::get(&mut tx, campaign_id, id).await?;
    let versions = memory::versions(&mut tx, &item).await?;
    Ok(Json(Listing::of(versions, i64::MAX, |version| version.version)))
}

/// Revokes an item: it is told to nobody and found no more, and can still be shown.
#[utoipa::path(
    post,
    path = "/v1/campaigns/{id}/memory/{item}/revoke",
    operation_id = "revoke_memory",
    tag = "memory",
    params(("id" = Uuid, Path, description = "The campaign"), ("item" = Uuid, Path)),
    responses(
        (status = 200, body = Item),
        (status = 404, description = "`unknown_campaign`, `unknown_item`"),
        (status = 409, description = "`campaign_closed`, `item_revoked`"),
    ),
)]
async fn revoke(
    app: App,
    who: Actor,
    IdAndItem(campaign_id, id): IdAndItem,
) -> Result<Json<Item>, Problem> {
    let (mut tx, now) = (begin(&app).await?, app.clock.now());
    let item = memory::get(&mut tx, campaign_id, id).await?;
    let by = Who::Operator { label: &who.label() };
    let named_so = (item.kind, item.owner.as_deref(), item.name.as_str());
    let revoked = memory::revoke(&mut tx, campaign_id, named_so, &by, now).await?;
    let data = revoked.for_audit();
    audit::write(&mut *tx, &who, Action::MemoryRevoke, campaign_id, data, now).await?;
    tx.commit().await?;
    Ok(Json(revoked))
}

impl ImportedItem {
    fn into_entry(self, number: usize, app: &App) -> Entry {
        let document = Document {
            kind: self.kind,
            owner: self.owner.map(|written| owner(app, &written)),
            name: self.name,
            title: self.title,
            expires_at: self.expires_at,
            body: self.body,
        };
        Entry { at: format!("/items/{number}"), document }
    }
}

fn owner(app: &App, written: &str) -> String {
    posts::reader_named(&app.agents.current(), written)
}
