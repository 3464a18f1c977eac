//! What is wrong with a file, in words for the person who wrote it.

use crate::domain::class::{Class, Classify, Kind};
use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = AgentFileProblem)]
pub struct Problem {
    pub file: String,
    /// From 1. `None`: the file as a whole.
    pub line: Option<usize>,
    /// The key of the front matter.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// Everything that is wrong, in the order of files and lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    pub(in crate::domain) fn whole(
        file: &str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            key: None,
            message: message.into(),
            fix: fix.into(),
        }
    }
}

impl Classify for Problems {
    fn class(&self) -> Class {
        Class::of(Kind::Invalid, "bad_agent_files")
    }
}

impl Problem {
    /// Without what to write instead.
    pub fn in_one_line(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let key = self.key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default();
        format!("{}{line}: {key}{}", self.file, self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  write: {}", self.in_one_line(), self.fix)
    }
}

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_problems = self.0.len();
        let s = if n_problems == 1 { "" } else { "s" };
        write!(f, "the files of agents, skills and nodes have {n_problems} problem{s}")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n\n{problem}"))
    }
}
