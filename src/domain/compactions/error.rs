//! Errors of compactions, and their classes.

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
        "session {session_id} has no compaction {generation}: `dalsegno session show {session_id}` lists them"
    )]
    Unknown { session_id: Uuid, generation: i32 },
    #[error(
        "session {0} uses its whole transcript, so there is no compaction to undo: `dalsegno session compact {0}` compacts it"
    )]
    NothingToUndo(Uuid),
    #[error(
        "session {session_id} has no archive {number}: `dalsegno session archives {session_id}` lists them"
    )]
    NoArchive { session_id: Uuid, number: i32 },
    #[error("the stored {what} of compaction {generation} of session {session_id} cannot be read")]
    Invalid { session_id: Uuid, generation: i32, what: &'static str, source: serde_json::Error },
    #[error("cannot enqueue the compaction of session {session_id}")]
    Enqueue { session_id: Uuid, source: queue::Error },
    #[error("cannot read the result of job {job_id}, which compacts a session")]
    Job { job_id: i64, source: queue::Error },
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_compaction");
    pub const NO_ARCHIVE: Class = Class::of(Kind::NotFound, "unknown_archive");
    pub const NOTHING_TO_UNDO: Class = Class::of(Kind::Conflict, "nothing_to_undo");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } => Self::UNKNOWN,
            Self::NoArchive { .. } => Self::NO_ARCHIVE,
            Self::Invalid { .. } => Class::of(Kind::Internal, "internal"),
            Self::NothingToUndo(_) => Self::NOTHING_TO_UNDO,
            Self::Enqueue { source, .. } | Self::Job { source, .. } => source.class(),
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
