//! Changes of a campaign's memory by operators.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Refusal, Spec,
    memory::{TAG, owner},
};
use crate::domain::{
    audit::Action,
    campaigns,
    memory::{
        self, Document, Entry, Error, ImportResult, Item, Kind, MemoryCaller, New, PublishResult,
    },
    timestamp,
};

/// Publishes an item, or the next version of the item with the same kind, owner and name.
///
/// If the item already has this content, nothing changes. Journal entries cannot be replaced.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMemoryItem, example = json!({ "kind": "edict", "name": "tone", "title": "The tone", "body": "Write short sentences." }))]
pub struct PublishMemory {
    /// The campaign.
    pub id: Uuid,
    pub kind: Kind,
    /// The agent of a journal; edicts and records have none.
    pub owner: Option<String>,
    /// A name in the form of agent names: `tone-of-voice`. Optional for entries of a journal only.
    #[schema(max_length = 64)]
    pub name: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    pub title: String,
    #[schema(min_length = 1)]
    pub body: String,
    /// The moment from which agents no longer see it.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The version to replace; 0 for an item that does not exist yet.
    pub expected_version: Option<i32>,
}

/// Imports many items: all of them, or none and a list of all problems.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MemoryImport)]
pub struct ImportMemory {
    /// The campaign.
    pub id: Uuid,
    #[schema(max_items = 2000)]
    pub items: Vec<ImportedItem>,
    /// True: items that exist with another text get a new version. Without it, they are refused.
    #[serde(default)]
    pub replace: bool,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ImportedMemoryItem)]
pub struct ImportedItem {
    pub kind: Kind,
    pub owner: Option<String>,
    #[schema(max_length = 64)]
    pub name: String,
    #[schema(min_length = 1, max_length = 200)]
    pub title: String,
    #[schema(min_length = 1)]
    pub body: String,
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub expires_at: Option<DateTime<Utc>>,
    /// The name of the item in refusals and warnings, such as its file; `/items/0` without one.
    pub at: Option<String>,
}

/// Revokes an item: agents no longer see or find it, and people can still read it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeMemory {
    /// The campaign.
    pub id: Uuid,
    pub item: Uuid,
}

impl Change for PublishMemory {
    const SPEC: Spec =
        Spec::change("publish_memory", "/v1/campaigns/{id}/memory", "memory publish")
            .tag(TAG)
            .refuses(Error::OF_PUBLICATION);
    const ACTION: Action = Action::MemoryPublish;
    type Output = PublishResult;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<PublishResult> {
        let owner = owner(call, self.owner.as_deref())?;
        let new = New {
            kind: self.kind,
            owner: owner.as_deref(),
            name: self.name.as_deref(),
            title: &self.title,
            body: &self.body,
            expires_at: self.expires_at,
            expected_version: self.expected_version,
            is_imported: false,
        };
        let by = MemoryCaller::Operator { label: &call.actor.label() };
        let config = &call.config.memory;
        let output = memory::publish(conn, self.id, &new, &by, config, call.now).await?;
        if !output.changed {
            return Ok(ChangeOutput::nothing(self.id, output));
        }
        let data = output.item.for_audit();
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Change for ImportMemory {
    const SPEC: Spec =
        Spec::change("import_memory", "/v1/campaigns/{id}/memory/import", "memory import")
            .tag(TAG)
            .takes_many()
            .refuses(&[campaigns::Error::UNKNOWN, campaigns::Error::CLOSED, Error::BAD_ITEMS]);
    const ACTION: Action = Action::MemoryImport;
    type Output = ImportResult;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ImportResult> {
        let Self { id, items, replace } = self;
        let items = items.into_iter().enumerate();
        let entries = items.map(|(number, item)| item.entry(number, call));
        let entries = entries.collect::<Result<Vec<Entry>, Refusal>>()?;
        let (by, config) =
            (MemoryCaller::Operator { label: &call.actor.label() }, &call.config.memory);
        let output = memory::import(conn, id, &entries, replace, &by, config, call.now).await?;
        if output.created + output.replaced == 0 {
            return Ok(ChangeOutput::nothing(id, output));
        }
        let data = json!({ "created": output.created, "replaced": output.replaced });
        Ok(ChangeOutput::of(id, output, data))
    }
}

impl Change for RevokeMemory {
    const SPEC: Spec =
        Spec::change("revoke_memory", "/v1/campaigns/{id}/memory/{item}/revoke", "memory revoke")
            .tag(TAG)
            .refuses(&[
                campaigns::Error::UNKNOWN,
                Error::UNKNOWN_ITEM,
                campaigns::Error::CLOSED,
                Error::REVOKED,
            ]);
    const ACTION: Action = Action::MemoryRevoke;
    type Output = Item;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Item> {
        let item = memory::get(conn, self.id, self.item).await?;
        let by = MemoryCaller::Operator { label: &call.actor.label() };
        let named = (item.kind, item.owner.as_deref(), item.name.as_str());
        let output = memory::revoke(conn, self.id, named, &by, call.now).await?;
        let data = output.for_audit();
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl ImportedItem {
    fn entry(self, number: usize, call: &Call) -> Result<Entry, Refusal> {
        let document = Document {
            kind: self.kind,
            owner: owner(call, self.owner.as_deref())?,
            name: self.name,
            title: self.title,
            expires_at: self.expires_at,
            body: self.body,
        };
        Ok(Entry { at: self.at.unwrap_or_else(|| format!("/items/{number}")), document })
    }
}
