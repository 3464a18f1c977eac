//! Errors of memory, and their classes.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::import::Mistake;
use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind, NUL_IN_TEXT},
    text,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no {kind} `{name}` in this campaign: list the items of this kind")]
    NoItem { kind: &'static str, name: String },
    #[error(
        "there is no item {0} in the memory of this campaign: `dalsegno memory ls` lists the items"
    )]
    NoId(Uuid),
    #[error("{kind} `{name}` has no version {version}: its versions go up to {current}")]
    NoVersion { kind: &'static str, name: String, version: i32, current: i32 },
    #[error("invalid name {name:?}: {advice}; use for example `tone-of-voice`")]
    Name { name: String, advice: &'static str },
    #[error("the title {0}: write one short line")]
    Title(&'static str),
    #[error("you may not {what}: {advice}")]
    NotAllowed { what: String, advice: &'static str },
    #[error(
        "{kind} `{name}` is at version {current}, not at {expected}: read it again, then repeat the change on its new content"
    )]
    Changed { kind: &'static str, name: String, expected: i32, current: i32 },
    #[error(
        "the journal already has an entry `{0}`, and entries cannot be replaced: use another name"
    )]
    Written(String),
    #[error("{kind} `{name}` was revoked or has expired: use the items that are listed")]
    Over { kind: &'static str, name: String },
    #[error("{kind} `{name}` is already revoked")]
    Revoked { kind: &'static str, name: String },
    #[error("{kind} `{name}` has {versions} versions, the maximum: publish it under another name")]
    TooManyVersions { kind: &'static str, name: String, versions: i32 },
    #[error(
        "your items in this campaign would have {bytes} bytes with all earlier versions, at most {limit} are allowed (memory.agent_max_bytes): continue without this item, and ask the operator for a higher limit. Revoked and expired items are removed after memory.keep_days"
    )]
    Full { bytes: i64, limit: i64 },
    #[error(
        "there are already {limit} edicts, the maximum: revoke one first, or combine some of them"
    )]
    TooManyEdicts { limit: i64 },
    #[error("the expiry {0} is in the past: give a future time")]
    Expired(DateTime<Utc>),
    #[error(
        "a journal belongs to one agent: name it with --owner AGENT on the command line, in the field `owner` over HTTP"
    )]
    NoOwner,
    #[error("{0} belong to the whole campaign: leave out the owner")]
    Owner(&'static str),
    #[error("{} of the items are invalid, so none was imported{}", .0.len(), lines(.0))]
    Import(Vec<Mistake>),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN_ITEM: Class = Class::of(Kind::NotFound, "unknown_item");
    pub const UNKNOWN_VERSION: Class = Class::of(Kind::NotFound, "unknown_version");
    pub const REVOKED: Class = Class::of(Kind::Conflict, "item_revoked");
    pub const BAD_OWNER: Class = Class::of(Kind::Invalid, "bad_owner");
    pub const BAD_ITEMS: Class = Class::of(Kind::Invalid, "bad_items");
    const CHANGED: Class = Class::of(Kind::Conflict, "item_changed");
    const WRITTEN: Class = Class::of(Kind::Conflict, "entry_written");
    pub(super) const TOO_MANY_VERSIONS: Class = Class::of(Kind::Conflict, "too_many_versions");
    pub(super) const TOO_MANY_EDICTS: Class = Class::of(Kind::Conflict, "too_many_edicts");
    pub(super) const BAD_NAME: Class = Class::of(Kind::Invalid, "bad_item_name");
    pub(super) const BAD_TITLE: Class = Class::of(Kind::Invalid, "bad_title");
    const EXPIRED: Class = Class::of(Kind::Invalid, "expired");
    /// Refusals of a publication by a person.
    pub const OF_PUBLICATION: &[Class] = &[
        campaigns::Error::UNKNOWN,
        Self::UNKNOWN_ITEM,
        campaigns::Error::CLOSED,
        Self::CHANGED,
        Self::WRITTEN,
        Self::TOO_MANY_VERSIONS,
        Self::TOO_MANY_EDICTS,
        text::Error::TOO_LONG,
        Self::BAD_NAME,
        Self::BAD_TITLE,
        Self::BAD_OWNER,
        Self::EXPIRED,
        text::Error::EMPTY,
        NUL_IN_TEXT,
    ];
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NoItem { .. } | Self::NoId(_) => Self::UNKNOWN_ITEM,
            Self::NoVersion { .. } => Self::UNKNOWN_VERSION,
            Self::Name { .. } => Self::BAD_NAME,
            Self::Title(_) => Self::BAD_TITLE,
            Self::NotAllowed { .. } => Class::of(Kind::Conflict, "not_allowed"),
            Self::Changed { .. } => Self::CHANGED,
            Self::Written(_) => Self::WRITTEN,
            Self::Over { .. } => Class::of(Kind::NotFound, "item_over"),
            Self::Revoked { .. } => Self::REVOKED,
            Self::TooManyVersions { .. } => Self::TOO_MANY_VERSIONS,
            Self::Full { .. } => Class::of(Kind::Conflict, "memory_full"),
            Self::TooManyEdicts { .. } => Self::TOO_MANY_EDICTS,
            Self::Expired(_) => Self::EXPIRED,
            Self::NoOwner | Self::Owner(_) => Self::BAD_OWNER,
            Self::Import(_) => Self::BAD_ITEMS,
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("\n- {mistake}")).collect()
}
