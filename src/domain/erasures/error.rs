//! Errors of erasures, and their classes.

use uuid::Uuid;

use super::key::KeyError;
use crate::{
    domain::{
        StatementError, campaigns,
        class::{Class, Classify, Kind},
        tasks, text,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("campaign {0} has no erasure: `dalsegno campaign erase {0}` starts one")]
    NotAsked(Uuid),
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error("cannot sign the receipt of an erasure")]
    Key(#[from] KeyError),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const NOT_ASKED: Class = Class::of(Kind::NotFound, "not_erased");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NotAsked(_) => Self::NOT_ASKED,
            Self::Key(_) => Class::of(Kind::Internal, "internal"),
            Self::Campaign(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Text(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
