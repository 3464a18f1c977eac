//! Errors of eval files, and their classes.

use crate::domain::class::{Class, Classify, Kind};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the eval file {path} is not valid: {source}")]
    Unreadable { path: String, source: toml::de::Error },
    #[error("the eval file {path} is not valid: {problem}")]
    Invalid { path: String, problem: String },
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Unreadable { .. } | Self::Invalid { .. } => {
                Class::of(Kind::Invalid, "bad_eval_file")
            }
        }
    }
}
