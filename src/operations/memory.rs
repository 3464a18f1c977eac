//! Read access of operators to the memory of a campaign: edicts, records and journals.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    Page, campaigns,
    memory::{self, Error, Filter, Hit, Item, Kind, MemoryCaller, Version},
    posts,
    search::Question,
    text,
};

pub(super) const TAG: &str = "memory";

/// Lists the items in the memory of a campaign, the newest first, without their texts.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMemory {
    /// The campaign.
    pub id: Uuid,
    #[schema(inline)]
    pub kind: Option<Kind>,
    /// Only the journal of this agent; `curator_2` and `curator/2` are instance 2 of curator.
    pub owner: Option<String>,
    /// Revoked and expired items, too.
    #[serde(default)]
    pub ended: bool,
    /// The id of the last item that was read.
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Searches the memory of a campaign by words, the best match first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchMemory {
    /// The campaign.
    pub id: Uuid,
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub q: String,
    #[schema(inline)]
    pub kind: Option<Kind>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Exports items with their texts, in the order in which they were first written.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportMemory {
    /// The campaign.
    pub id: Uuid,
    /// The id of the last item that was read.
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Finds the item with this kind, owner and name, also a revoked or expired one.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FindMemory {
    /// The campaign.
    pub id: Uuid,
    #[schema(inline)]
    pub kind: Kind,
    /// The agent of a journal; edicts and records have none.
    pub owner: Option<String>,
    pub name: String,
}

/// Shows an item, also a revoked or expired one.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowMemory {
    /// The campaign.
    pub id: Uuid,
    pub item: Uuid,
    /// An earlier version; else the current one.
    #[schema(minimum = 1)]
    pub version: Option<i32>,
}

/// Lists all versions of an item, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMemoryVersions {
    /// The campaign.
    pub id: Uuid,
    pub item: Uuid,
}

impl Operation for ListMemory {
    const SPEC: Spec = Spec::read("list_memory", "/v1/campaigns/{id}/memory", "memory ls")
        .tag(TAG)
        .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Listing<Item>;

    async fn run(self, call: &Call) -> Result<Listing<Item>, Refusal> {
        let limit = page_limit(self.limit)?;
        campaigns::get(&call.pool, self.id).await?;
        let owner = owner(call, self.owner.as_deref())?;
        let filter = Filter { kind: self.kind, owner: owner.as_deref(), with_ended: self.ended };
        let page = Page { after: self.cursor, limit: limit + 1 };
        let by = MemoryCaller::Operator { label: &call.actor.label() };
        let items = memory::list(&call.pool, self.id, filter, &by, page, call.now).await?;
        Ok(Listing::of(items, limit, |item| item.id))
    }
}

impl Operation for SearchMemory {
    const SPEC: Spec =
        Spec::read("search_memory", "/v1/campaigns/{id}/memory/search", "memory search")
            .tag(TAG)
            .refuses(&[
                campaigns::Error::UNKNOWN,
                text::Error::TOO_LONG,
                text::Error::EMPTY,
                text::Error::NO_WORDS,
            ]);
    type Output = Listing<Hit>;

    async fn run(self, call: &Call) -> Result<Listing<Hit>, Refusal> {
        let Self { id, q, kind, limit } = self;
        let limit = page_limit(limit)?;
        let meaning = call.meanings.of_question(&q).await;
        let mut transaction = call.begin_read().await?;
        campaigns::get(&mut *transaction, id).await?;
        let question = Question { words: &q, limit, meaning: meaning.as_ref() };
        let by = MemoryCaller::Operator { label: &call.actor.label() };
        let config = &call.config.memory;
        let hits =
            memory::search(&mut transaction, (id, kind), question, &by, config, call.now).await?;
        // Ranks cannot be a cursor: a larger limit returns more.
        Ok(Listing { items: hits, next: None })
    }
}

impl Operation for ExportMemory {
    const SPEC: Spec =
        Spec::read("export_memory", "/v1/campaigns/{id}/memory/export", "memory export")
            .tag(TAG)
            .refuses(&[campaigns::Error::UNKNOWN]);
    type Output = Listing<Item>;

    async fn run(self, call: &Call) -> Result<Listing<Item>, Refusal> {
        let limit = page_limit(self.limit)?;
        campaigns::get(&call.pool, self.id).await?;
        let page = Page { after: self.cursor, limit: limit + 1 };
        let items = memory::list_whole(&call.pool, self.id, page, call.now).await?;
        Ok(Listing::of(items, limit, |item| item.id))
    }
}

impl Operation for FindMemory {
    const SPEC: Spec = Spec::read("find_memory", "/v1/campaigns/{id}/memory/find", "memory show")
        .tag(TAG)
        .refuses(&[campaigns::Error::UNKNOWN, Error::UNKNOWN_ITEM, Error::BAD_OWNER]);
    type Output = Item;

    async fn run(self, call: &Call) -> Result<Item, Refusal> {
        let owner = owner(call, self.owner.as_deref())?;
        let mut transaction = call.begin_read().await?;
        campaigns::get(&mut *transaction, self.id).await?;
        let by = MemoryCaller::Operator { label: &call.actor.label() };
        let named = (self.kind, owner.as_deref(), self.name.as_str());
        Ok(memory::by_name(&mut transaction, self.id, named, &by, call.now).await?)
    }
}

impl Operation for ShowMemory {
    const SPEC: Spec = Spec::read("show_memory", "/v1/campaigns/{id}/memory/{item}", "memory show")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN_ITEM, Error::UNKNOWN_VERSION]);
    type Output = Item;

    async fn run(self, call: &Call) -> Result<Item, Refusal> {
        let mut transaction = call.begin_read().await?;
        let item = memory::get(&mut transaction, self.id, self.item).await?;
        Ok(match self.version {
            None => item,
            Some(version) => memory::at_version(&mut transaction, item, version).await?,
        })
    }
}

impl Operation for ListMemoryVersions {
    const SPEC: Spec = Spec::read(
        "list_memory_versions",
        "/v1/campaigns/{id}/memory/{item}/versions",
        "memory show",
    )
    .tag(TAG)
    .refuses(&[Error::UNKNOWN_ITEM]);
    type Output = Listing<Version>;

    async fn run(self, call: &Call) -> Result<Listing<Version>, Refusal> {
        let mut transaction = call.begin_read().await?;
        let item = memory::get(&mut transaction, self.id, self.item).await?;
        Ok(Listing { items: memory::versions(&mut transaction, &item).await?, next: None })
    }
}

/// Converts the owner of a journal into the name used on the board.
pub(super) fn owner(call: &Call, written: Option<&str>) -> Result<Option<String>, Refusal> {
    Ok(match written {
        Some(written) => Some(posts::reader_named(&*call.catalogue()?, written)),
        None => None,
    })
}
