//! Errors of memory, and their classes.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::import::Mistake;
use crate::domain::{
    Failed, campaigns,
    class::{Class, Classify, Kind},
    text,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no {kind} `{name}` in this campaign: list what there is")]
    NoItem { kind: &'static str, name: String },
    #[error(
        "there is nothing in the memory of this campaign with the id {0}: `dalsegno memory ls` lists it"
    )]
    NoId(Uuid),
    #[error("{kind} `{name}` has no version {version}: its versions go up to {current}")]
    NoVersion { kind: &'static str, name: String, version: i32, current: i32 },
    #[error("{name:?} is no name here: {advice}; `tone-of-voice` is one")]
    Name { name: String, advice: &'static str },
    #[error("the title {0}: write one short line")]
    Title(&'static str),
    #[error("you may not {what}: {advice}")]
    NotAllowed { what: String, advice: &'static str },
    #[error(
        "{kind} `{name}` is at version {current}, and not at {expected}: read it again, and decide by what it says now"
    )]
    Changed { kind: &'static str, name: String, expected: i32, current: i32 },
    #[error(
        "there is an entry `{0}` in the journal already, and entries are never replaced: write another one under another name"
    )]
    Written(String),
    #[error(
        "{kind} `{name}` holds no more, it was revoked or has expired, and no agent is told what it says: go by what is listed"
    )]
    Over { kind: &'static str, name: String },
    #[error("{kind} `{name}` is revoked already")]
    Revoked { kind: &'static str, name: String },
    #[error(
        "{kind} `{name}` has had {versions} versions, and more are not kept: publish it under another name"
    )]
    TooManyVersions { kind: &'static str, name: String, versions: i32 },
    #[error(
        "what you have written in this campaign would have {bytes} bytes with all earlier versions, {limit} are allowed \
         (memory.agent_max_bytes): go on without, and ask the operator for more room. What is revoked or expires makes room when it is \
         removed, memory.keep_days later"
    )]
    Full { bytes: i64, limit: i64 },
    #[error(
        "there are {limit} edicts already, and all of them are told to everybody: revoke one first, or put them together"
    )]
    TooManyEdicts { limit: i64 },
    #[error("it expires at {0}, which is over already: name a time to come")]
    Expired(DateTime<Utc>),
    #[error("a journal is one agent's: say whose")]
    NoOwner,
    #[error("{0} belong to the whole campaign, and not to an agent")]
    Owner(&'static str),
    #[error("{} of the items cannot be taken in, and so none was{}", .0.len(), lines(.0))]
    Import(Vec<Mistake>),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NoItem { .. } | Self::NoId(_) => Class::of(Kind::NotFound, "unknown_item"),
            Self::NoVersion { .. } => Class::of(Kind::NotFound, "unknown_version"),
            Self::Name { .. } => Class::of(Kind::Invalid, "bad_item_name"),
            Self::Title(_) => Class::of(Kind::Invalid, "bad_title"),
            Self::NotAllowed { .. } => Class::of(Kind::Conflict, "not_allowed"),
            Self::Changed { .. } => Class::of(Kind::Conflict, "item_changed"),
            Self::Written(_) => Class::of(Kind::Conflict, "entry_written"),
            Self::Over { .. } => Class::of(Kind::NotFound, "item_over"),
            Self::Revoked { .. } => Class::of(Kind::Conflict, "item_revoked"),
            Self::TooManyVersions { .. } => Class::of(Kind::Conflict, "too_many_versions"),
            Self::Full { .. } => Class::of(Kind::Conflict, "memory_full"),
            Self::TooManyEdicts { .. } => Class::of(Kind::Conflict, "too_many_edicts"),
            Self::Expired(_) => Class::of(Kind::Invalid, "expired"),
            Self::NoOwner | Self::Owner(_) => Class::of(Kind::Invalid, "bad_owner"),
            Self::Import(_) => Class::of(Kind::Invalid, "bad_items"),
            Self::Text(error) => error.class(),
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| format!("\n- {mistake}")).collect()
}
