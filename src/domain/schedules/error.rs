//! Errors of schedules, and their classes.

use super::timetable::Invalid;
use crate::{
    domain::{
        StatementError,
        class::{Class, Classify, Kind},
        tasks,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no schedule `{0}`: `dalsegno schedule ls` lists them")]
    Unknown(String),
    #[error("the schedule `{name}`: {source}")]
    Invalid {
        name: String,
        #[source]
        source: Invalid,
    },
    #[error(
        "the schedule `{0}` is built in: change its time in [scheduler] of the configuration, or pause it with `dalsegno schedule pause {0}`"
    )]
    BuiltIn(String),
    #[error("cannot write the payload of the schedule `{name}`: {source}")]
    Encode {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error("cannot enqueue the job of the schedule `{name}`: {source}")]
    Enqueue {
        name: String,
        #[source]
        source: queue::Error,
    },
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_schedule");
    pub const INVALID: Class = Class::of(Kind::Invalid, "bad_timetable");
    pub const BUILT_IN: Class = Class::of(Kind::Conflict, "built_in_schedule");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Invalid { .. } => Self::INVALID,
            Self::BuiltIn(_) => Self::BUILT_IN,
            Self::Encode { .. } => Class::of(Kind::Internal, "internal"),
            Self::Task(error) => error.class(),
            Self::Enqueue { source, .. } => source.class(),
            Self::Database(error) => error.class(),
        }
    }
}
