//! Findings of checks.

use serde::Serialize;

/// A result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub status: Status,
    pub what: String,
    pub why: &'static str,
    /// The command, or the sentence, that solves the problem. Empty without a problem.
    pub fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

impl Finding {
    pub(in crate::doctor) fn ok(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Self { check, status: Status::Ok, what: what.into(), why, fix: String::new() }
    }

    pub(in crate::doctor) fn skipped(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Self { status: Status::Skipped, ..Self::ok(check, what, why) }
    }

    pub(in crate::doctor) fn warn(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warn, fix: fix.into(), ..Self::ok(check, what, why) }
    }

    pub(in crate::doctor) fn fail(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, ..Self::warn(check, what, why, fix) }
    }
}
