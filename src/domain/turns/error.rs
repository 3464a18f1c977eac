//! Errors of turns, and their classes.

use uuid::Uuid;

use crate::{
    domain::{
        StatementError,
        class::{Class, Classify, Kind},
        sessions,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "neither session {session_id} nor another one of its conversation has a turn {number}: `dalsegno turn ls {session_id}` lists the turns, and `dalsegno session show {session_id}` the sessions before and after it"
    )]
    Unknown { session_id: Uuid, number: i32 },
    #[error(
        "session {session_id} has no turn {number}, and several of its conversation have one, because it began again without its memory: name one of the sessions {}",
        format_list(sessions)
    )]
    Ambiguous { session_id: Uuid, number: i32, sessions: Vec<Uuid> },
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_turn");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } | Self::Ambiguous { .. } => Self::UNKNOWN,
            Self::Session(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

fn format_list(sessions: &[Uuid]) -> String {
    sessions.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
}
