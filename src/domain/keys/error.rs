//! Errors of keys, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no API key {0}: `dalsegno key ls` lists them")]
    Unknown(String),
    #[error("more than one API key matches `{given}`: use the handle of one of them, {fitting}")]
    Several { given: String, fitting: String },
    #[error(
        "an API key `{0}` exists already: `dalsegno key rotate {0}` replaces it, `dalsegno key revoke {0}` revokes it; or use another name"
    )]
    NameTaken(String),
    #[error("API key {0} is revoked and cannot be rotated: create a new one")]
    Revoked(Uuid),
    #[error("API key {id} was already rotated: rotate its successor {successor}")]
    Replaced { id: Uuid, successor: Uuid },
    #[error("the API key would already be expired: give a future time")]
    Expired,
    #[error(transparent)]
    Campaign(#[from] campaigns::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_key");
    pub const NAME_TAKEN: Class = Class::of(Kind::Conflict, "key_name_taken");
    pub const REVOKED: Class = Class::of(Kind::Conflict, "key_revoked");
    pub const REPLACED: Class = Class::of(Kind::Conflict, "key_replaced");
    pub const EXPIRED: Class = Class::of(Kind::Invalid, "key_expired");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Several { .. } => Class::of(Kind::Invalid, "ambiguous_id"),
            Self::NameTaken(_) => Self::NAME_TAKEN,
            Self::Revoked(_) => Self::REVOKED,
            Self::Replaced { .. } => Self::REPLACED,
            Self::Expired => Self::EXPIRED,
            Self::Campaign(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
