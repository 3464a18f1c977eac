//! Errors of agent pauses, and their classes.

use uuid::Uuid;

use super::format_place;
use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
    text,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("agent `{agent}` is not paused {}: `dalsegno agent status` shows its pauses", format_place(*.campaign_id))]
    NotPaused { agent: String, campaign_id: Option<Uuid> },
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const NOT_PAUSED: Class = Class::of(Kind::Conflict, "agent_not_paused");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NotPaused { .. } => Self::NOT_PAUSED,
            Self::Campaign(error) => error.class(),
            Self::Text(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
