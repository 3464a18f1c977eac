//! Errors of eval files, and their classes.

use std::io;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the eval file {path} is not valid: {source}")]
    Unreadable { path: String, source: toml::de::Error },
    #[error("the eval file {path} is not valid: {problem}")]
    Invalid { path: String, problem: String },
    #[error(
        "cannot read the agent file {file}, which a variant of the eval file {path} names: {source}; write its path beside the eval file"
    )]
    AgentFile { path: String, file: String, source: io::Error },
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unreadable { .. } | Self::Invalid { .. } | Self::AgentFile { .. } => {
                Class::of(Kind::Invalid, "bad_eval_file")
            }
        }
    }
}

/// Errors of recorded runs.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("`{0}` is not a name: use small letters, digits, - and _, at most 64")]
    BadName(String),
    #[error("the run has {0} answers, at most 2000 are allowed: split the eval file into several")]
    TooMany(usize),
    #[error("no eval run {0} is recorded in this campaign: `dalsegno eval run FILE` records one")]
    Unknown(i64),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl RecordError {
    pub const BAD_NAME: Class = Class::of(Kind::Invalid, "bad_eval_name");
    pub const TOO_MANY: Class = Class::of(Kind::Invalid, "too_many_answers");
    pub const UNKNOWN: Class = Class::of(Kind::NotFound, "unknown_eval_run");
}

impl Classify for RecordError {
    fn class(&self) -> Class {
        match self {
            Self::BadName(_) => Self::BAD_NAME,
            Self::TooMany(_) => Self::TOO_MANY,
            Self::Unknown(_) => Self::UNKNOWN,
            Self::Database(error) => error.class(),
        }
    }
}
