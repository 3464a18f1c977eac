//! Errors of the files of tasks, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("task {task_id} has no file `{name}`: `dalsegno task files {task_id}` lists them")]
    Unknown { task_id: Uuid, name: String },
    #[error("the file `{name}` of task {task_id} is not stored: {problem}")]
    NotStored { task_id: Uuid, name: String, problem: String },
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_task_file");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unknown { .. } | Self::NotStored { .. } => Self::UNKNOWN,
            Self::Database(error) => error.class(),
        }
    }
}
