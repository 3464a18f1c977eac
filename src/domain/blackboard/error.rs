//! Errors of blackboard, and their classes.

use super::{Path, size::MAX_BYTES};
use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the blackboard is at version {current}, not at {expected}: read it again, then repeat the change on its new content"
    )]
    Version { expected: i64, current: i64 },
    #[error("the blackboard has no version {version}: its history goes up to {current}")]
    NoVersion { version: i64, current: i64 },
    #[error(
        "agent `{agent}` may not write {path}: its file grants {granted}; a person can allow it with the line `{line}` in {agent}.md, in the folder `agents.folder`"
    )]
    NotGranted { agent: String, path: Path, granted: String, line: String },
    #[error("a blackboard and its patches are JSON objects: {{ \"key\": ... }}")]
    NoObject,
    #[error(
        "the blackboard would have {n_bytes} bytes, at most {MAX_BYTES} are allowed: store long content elsewhere"
    )]
    TooLong { n_bytes: usize },
    #[error("it has more than {limit} keys and items: store long lists elsewhere")]
    TooMany { limit: usize },
    #[error("it is nested deeper than {limit} levels: make it flatter")]
    TooDeep { limit: usize },
    #[error("the key `{start}` in {at} has {n_chars} characters: use 1 to {limit}")]
    Key {
        /// The object with the key.
        at: Path,
        /// The beginning of the key.
        start: String,
        n_chars: usize,
        limit: usize,
    },
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const CHANGED: Class = Class::of(Kind::Conflict, "blackboard_changed");
    pub const NO_VERSION: Class = Class::of(Kind::NotFound, "unknown_version");
    pub const NO_OBJECT: Class = Class::of(Kind::Invalid, "no_object");
    pub const TOO_LARGE: Class = Class::of(Kind::TooLarge, "blackboard_too_large");
    pub const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_blackboard_key");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Version { .. } => Self::CHANGED,
            Self::NoVersion { .. } => Self::NO_VERSION,
            Self::NotGranted { .. } => Class::of(Kind::Invalid, "not_granted"),
            Self::NoObject => Self::NO_OBJECT,
            Self::TooLong { .. } | Self::TooMany { .. } | Self::TooDeep { .. } => Self::TOO_LARGE,
            Self::Key { .. } => Self::BAD_KEY,
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
