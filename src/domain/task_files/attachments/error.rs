//! Errors of attachments, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
    task_files::NameError,
};

/// Types of files that a task can be given, for people.
pub const ACCEPTED: &str = "PNG, JPEG, GIF and WebP images, PDF, and text in UTF-8";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the task has {n} attachments: tasks.max_attachments allows {max}")]
    TooMany { n: usize, max: usize },
    #[error("attachment `{name}` has {n_bytes} bytes: tasks.max_attachment_bytes allows {max}")]
    TooLong { name: String, n_bytes: u64, max: u64 },
    #[error(
        "with attachment `{name}` the task has {n_bytes} bytes of attachments: tasks.max_attachments_bytes allows {max}"
    )]
    AllTooLong { name: String, n_bytes: u64, max: u64 },
    #[error(
        "attachment {number} is incomplete: send `name` and `content`, or `task` and `file` to use a file of another task of the campaign"
    )]
    Incomplete { number: usize },
    #[error("attachment `{name}` cannot be used: {reason}")]
    Name {
        name: String,
        #[source]
        reason: NameError,
    },
    #[error("attachment `{name}` cannot be used: its name must have no folders")]
    Folder { name: String },
    #[error("two attachments are named `{name}`: give one of them another `name`")]
    Duplicate { name: String },
    #[error("attachment `{name}` seems to be {found}, which is not accepted: {ACCEPTED} are")]
    NotAccepted { name: String, found: String },
    #[error(
        "attachment `{name}` seems to be {found}, but its {claim} says {claimed}: rename it or correct its type; {ACCEPTED} are accepted"
    )]
    Contradiction { name: String, found: String, claim: &'static str, claimed: String },
    #[error(
        "task {task_id} of this campaign has no file `{file}` to attach: `dalsegno task files {task_id}` lists its files"
    )]
    UnknownFile { task_id: Uuid, file: String },
    #[error(
        "the file `{file}` of task {task_id} is not stored, so it cannot be attached: {problem}"
    )]
    NotStored { task_id: Uuid, file: String, problem: String },
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const INVALID: Class = Class::of(Kind::Invalid, "bad_attachment");
    pub const TOO_LARGE: Class = Class::of(Kind::TooLarge, "attachment_too_large");
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_attachment");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::TooLong { .. } | Self::AllTooLong { .. } => Self::TOO_LARGE,
            Self::UnknownFile { .. } => Self::UNKNOWN,
            Self::TooMany { .. }
            | Self::Incomplete { .. }
            | Self::Name { .. }
            | Self::Folder { .. }
            | Self::Duplicate { .. }
            | Self::NotAccepted { .. }
            | Self::Contradiction { .. }
            | Self::NotStored { .. } => Self::INVALID,
            Self::Database(error) => error.class(),
        }
    }
}
