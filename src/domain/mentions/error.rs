//! Errors of mentions, and their classes.

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
    posts, tasks,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the idempotency key has {n_chars} characters: use 1 to 195 without NUL, for example a hash"
    )]
    Key { n_chars: usize },
    #[error(
        "the idempotency key `{0}` has been used for another post: use another key, or send the same post"
    )]
    KeyTaken(String),
    #[error(transparent)]
    Post(#[from] posts::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl From<tasks::BulkError> for Error {
    fn from(error: tasks::BulkError) -> Self {
        match error {
            tasks::BulkError::All(error) => error.into(),
            // All items have the same prompt, so one reason stands for all.
            tasks::BulkError::Items(mut wrong) => match wrong.pop() {
                Some((_, error)) => error.into(),
                None => {
                    StatementError { action: "add tasks", source: sqlx::Error::RowNotFound }.into()
                }
            },
        }
    }
}

impl Error {
    pub const KEY_TAKEN: Class = Class::of(Kind::Conflict, "idempotency_conflict");
    pub const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_idempotency_key");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Key { .. } => Self::BAD_KEY,
            Self::KeyTaken(_) => Self::KEY_TAKEN,
            Self::Post(error) => error.class(),
            Self::Task(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
