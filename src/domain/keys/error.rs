//! Errors of keys, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no key {0}: `dalsegno key ls` lists them")]
    Unknown(String),
    #[error("more than one key fits `{given}`, name one by its handle: {fitting}")]
    Several { given: String, fitting: String },
    #[error(
        "there is a key `{0}` already: `dalsegno key rotate {0}` makes its successor, `dalsegno key revoke {0}` ends it; or take another name"
    )]
    NameTaken(String),
    #[error("the key {0} is revoked, and nothing comes after it: make a new one")]
    Revoked(Uuid),
    #[error("the key {id} has been rotated already: {successor} came after it")]
    Replaced { id: Uuid, successor: Uuid },
    #[error("the key would be expired when it is made: give it a time that is still to come")]
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
