//! Findings about an installation: what was checked, and what solves each problem.

use std::{borrow::Cow, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Finding {
    /// The part that was checked, such as `database`.
    #[schema(value_type = String)]
    pub check: Cow<'static, str>,
    #[schema(inline)]
    pub status: Status,
    pub what: String,
    #[schema(value_type = String)]
    pub why: Cow<'static, str>,
    /// The command, or the sentence, that solves the problem. Empty without a problem.
    pub fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = FindingStatus)]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// Runs the checks of the process that serves.
#[derive(Clone)]
pub struct Examination(Arc<Examine>);

type Examine = dyn Fn() -> BoxFuture<'static, Vec<Finding>> + Send + Sync;

impl Examination {
    pub fn of(
        examine: impl Fn() -> BoxFuture<'static, Vec<Finding>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(examine))
    }

    pub async fn run(&self) -> Vec<Finding> {
        (self.0)().await
    }
}

impl fmt::Debug for Examination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Examination")
    }
}

impl Finding {
    pub fn ok(check: &'static str, what: impl Into<String>, why: &'static str) -> Self {
        let (check, why) = (Cow::Borrowed(check), Cow::Borrowed(why));
        Self { check, status: Status::Ok, what: what.into(), why, fix: String::new() }
    }

    pub fn skipped(check: &'static str, what: impl Into<String>, why: &'static str) -> Self {
        Self { status: Status::Skipped, ..Self::ok(check, what, why) }
    }

    pub fn warn(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warn, fix: fix.into(), ..Self::ok(check, what, why) }
    }

    pub fn fail(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, ..Self::warn(check, what, why, fix) }
    }
}
