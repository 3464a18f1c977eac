//! Errors of campaigns, and their classes.

use uuid::Uuid;

use crate::{
    domain::{
        StatementError,
        class::{Class, Classify, Kind},
        labels, parameters, text,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no campaign {0}: `dalsegno campaign ls` lists them")]
    Unknown(Uuid),
    #[error("campaign {0} is closed: create a new one")]
    Closed(Uuid),
    #[error(
        "campaign {id} is at version {current}, not at {expected}: read its texts again (`dalsegno campaign versions {id} --show {current}`), then repeat the edit on them"
    )]
    Version { id: Uuid, expected: i32, current: i32 },
    #[error(
        "campaign {id} has no version {version}: its current one is {current}; `dalsegno campaign versions {id}` lists those that are stored"
    )]
    NoVersion { id: Uuid, version: i32, current: i32 },
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Labels(#[from] labels::Error),
    #[error(transparent)]
    Parameters(#[from] parameters::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_campaign");
    pub const CLOSED: Class = Class::of(Kind::Conflict, "campaign_closed");
    pub const CHANGED: Class = Class::of(Kind::Conflict, "campaign_changed");
    pub const NO_VERSION: Class = Class::of(Kind::NotFound, "unknown_version");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Closed(_) => Self::CLOSED,
            Self::Version { .. } => Self::CHANGED,
            Self::NoVersion { .. } => Self::NO_VERSION,
            Self::Text(error) => error.class(),
            Self::Labels(error) => error.class(),
            Self::Parameters(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
