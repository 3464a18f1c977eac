//! Errors of turns, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
    sessions,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "session {session_id} has no turn {number}: `dalsegno turn ls {session_id}` lists its turns"
    )]
    Unknown { session_id: Uuid, number: i32 },
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_turn");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } => Self::UNKNOWN,
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
