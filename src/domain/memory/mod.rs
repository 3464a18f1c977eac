//! Memory of a campaign: edicts are rules for all agents, records are shared knowledge, journals are one agent's notes.
//!
//! Invariants:
//! - Access is decided in [`MemoryCaller`] alone: tools, API and commands ask there.
//! - Author and journal owner come from the caller, never from the text.
//! - A replaced version can still be read. A journal entry is never replaced.
//! - Only retention and erasure delete items. Until then, outdated items are revoked or expire.
//!
//! Race: two callers write at once. Writers of one campaign wait for each other ([`publish()`]). Versions are therefore dense, and
//! concurrent writers cannot exceed a limit together.

mod access;
mod config;
mod edicts;
mod error;
mod file;
mod import;
mod limits;
mod name;
mod publish;
mod read;
mod remove;
mod revoke;
mod search;
mod size_limits;
mod texts;
mod vectors;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::{
    access::MemoryCaller,
    config::Config,
    edicts::{ValidEdict, parse_standing},
    error::Error,
    file::{Document, NoDocument, read as read_document, write as write_document},
    import::{Entry, ImportResult, Mistake, import},
    limits::LIMITS,
    publish::{New, PublishResult, publish},
    read::{Filter, Version, at_version, by_name, find_id, get, list, list_whole, versions},
    remove::{count_ended, remove_ended, remove_some},
    revoke::revoke,
    search::{Hit, search},
    texts::find_texts,
    vectors::{keep_vectors, list_without_vector, request_embeddings},
};

/// The longest body in bytes. Holds even if the configuration allows more.
pub const BODY_MAX_BYTES: usize = 128 * 1024;
/// The longest title, in characters.
pub const TITLE_MAX_CHARS: usize = 200;

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    sqlx::Type,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = MemoryKind)]
pub enum Kind {
    /// A rule for all agents of the campaign, part of every call's system part.
    Edict,
    /// Knowledge shared by all agents of the campaign.
    Record,
    /// An entry of an agent's own notes.
    Journal,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = MemoryOrigin)]
pub enum Origin {
    /// A person.
    Operator,
    /// A turn of an agent.
    Agent,
}

/// Trust level of an item.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = MemoryTrust)]
pub enum Trust {
    /// Written or vouched for by a person.
    Operator,
    /// Written by a model, from any input that it got.
    Agent,
    /// Imported from a file by a person.
    Imported,
}

/// An edict, a record or an entry of a journal, in its current version or an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryItem)]
pub struct Item {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub kind: Kind,
    /// The owner of a journal, by its name on the board. Null for edicts and records.
    pub owner: Option<String>,
    pub name: String,
    /// Counts from 1.
    pub version: i32,
    pub title: String,
    /// The text. Left out of lists and search results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Size of title and body, in bytes.
    pub bytes: i32,
    pub trust: Trust,
    pub origin: Origin,
    /// The author: an operator's label as in the audit log, or an agent's name on the board.
    pub author: String,
    /// The task in whose turn an agent wrote the item.
    pub task_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub created_at: DateTime<Utc>,
    /// Time at which this version was written.
    pub written_at: DateTime<Utc>,
    /// Time from which the item is hidden from agents.
    pub expires_at: Option<DateTime<Utc>>,
    /// Time at which the item was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
    pub revoked_by: Option<String>,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Edict, Self::Record, Self::Journal];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edict => "edict",
            Self::Record => "record",
            Self::Journal => "journal",
        }
    }

    /// Returns the plural: folder name of an export, and a word of error messages.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Edict => "edicts",
            Self::Record => "records",
            Self::Journal => "journals",
        }
    }
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Agent => "agent",
            Self::Imported => "imported",
        }
    }
}

impl Item {
    /// Returns the audit log's record of the item: its identity without its text.
    pub fn for_audit(&self) -> Value {
        let Self { id, kind, owner, name, version, .. } = self;
        json!({ "item_id": id, "kind": kind, "owner": owner, "name": name, "version": version })
    }

    /// Returns true if the item is neither revoked nor expired.
    pub fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}
