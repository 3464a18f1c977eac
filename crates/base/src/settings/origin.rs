//! The origin of a value, for messages.

use std::fmt;

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(String),
    Variable(String),
    Flag,
    /// The value was read from a file which another layer named.
    Content {
        path: String,
        named_by: Box<Origin>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "the built-in defaults"),
            Self::File(path) => write!(f, "{path}"),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::Flag => write!(f, "the flag --set"),
            Self::Content { path, named_by } => write!(f, "{path}, named by {named_by}"),
        }
    }
}
