//! Errors of sign-ins, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no sign-in {0}: `dalsegno sign-in ls` lists them")]
    Unknown(Uuid),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_sign_in");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Database(error) => error.class(),
        }
    }
}
