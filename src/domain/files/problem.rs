//! Problems of a file, for the person who wrote it.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentFileProblem)]
pub struct Problem {
    pub file: String,
    /// The line from 1. Null: the file as a whole.
    pub line: Option<usize>,
    /// The key of the front matter.
    pub key: Option<String>,
    /// The problem.
    pub message: String,
    /// The text to write instead.
    pub fix: String,
}

impl Problem {
    pub(in crate::domain) fn of_file(
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

    /// Formats the problem without its fix.
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

/// Writes how many problems files have, and each of them.
pub(in crate::domain) fn list_problems(
    f: &mut fmt::Formatter<'_>,
    files: &str,
    problems: &[Problem],
) -> fmt::Result {
    let s = if problems.len() == 1 { "" } else { "s" };
    write!(f, "{files} have {} problem{s}", problems.len())?;
    problems.iter().try_for_each(|problem| write!(f, "\n\n{problem}"))
}
