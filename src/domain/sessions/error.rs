//! Errors of sessions, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no session {0}: `dalsegno session ls` lists them")]
    Unknown(Uuid),
    #[error(
        "session {0} is closed: `dalsegno session show {0}` names its successor, if it has one"
    )]
    Closed(Uuid),
    /// The lease has expired, or another worker came first.
    #[error(
        "another run has taken over session {0}, and nothing was written: try again when that run has ended"
    )]
    Overtaken(Uuid),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_session");
    /// Retryable, because the other run will have ended soon.
    pub const BUSY: Class = Class { retryable: true, ..Class::of(Kind::Conflict, "session_busy") };
    pub const CLOSED: Class = Class::of(Kind::Conflict, "session_closed");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Closed(_) => Self::CLOSED,
            Self::Overtaken(_) => Self::BUSY,
            Self::Database(error) => error.class(),
        }
    }
}
