//! Errors of bulk actions, and their classes.

use uuid::Uuid;

use crate::{
    domain::{
        StatementError,
        class::{Class, Classify, Kind},
        tasks, text,
    },
    queue,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no bulk action {0}: `dalsegno bulk ls` lists them")]
    Unknown(Uuid),
    #[error(
        "{}, not {expected}: check them, then repeat with expected_count {found}",
        text::count(*.found, "task matches", "tasks match")
    )]
    CountDiffers { expected: i64, found: i64 },
    #[error(
        "the filter is empty and would match every task: name a campaign or an agent, or confirm with expected_count"
    )]
    EmptyFilter,
    /// Another run has moved the cursor.
    #[error("a later run of bulk action {0} took over")]
    Overtaken(Uuid),
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_bulk_action");
    pub const COUNT_DIFFERS: Class = Class::of(Kind::Conflict, "count_differs");
    pub const EMPTY_FILTER: Class = Class::of(Kind::Invalid, "empty_filter");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown(_) => Self::UNKNOWN,
            Self::CountDiffers { .. } => Self::COUNT_DIFFERS,
            Self::EmptyFilter => Self::EMPTY_FILTER,
            Self::Overtaken(_) => {
                Class { retryable: true, ..Class::of(Kind::Conflict, "bulk_action_overtaken") }
            }
            Self::Text(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Queue(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
