//! Errors of campaigns, and their classes.

use uuid::Uuid;

use crate::{
    domain::{
        Failed,
        class::{Class, Classify, Kind},
        text,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no campaign {0}: `dalsegno campaign ls` lists them")]
    Unknown(Uuid),
    #[error("campaign {0} is closed: create a new one")]
    Closed(Uuid),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Class::of(Kind::NotFound, "unknown_campaign"),
            Self::Closed(_) => Class::of(Kind::Conflict, "campaign_closed"),
            Self::Text(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
