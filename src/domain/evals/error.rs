//! Errors of eval files, and their classes.

use std::io;

use crate::domain::class::{Class, Classify, Kind};

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
