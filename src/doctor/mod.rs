//! What is wrong with this installation, and the command that mends it.
//!
//! Each check yields findings; a check that cannot run because an earlier one failed says so instead of
//! guessing. The list grows with the service: a new component brings its checks here.

mod agents;
mod busy;
mod claude;
mod cleanup;
mod database;
mod embeddings;
mod ollama;
mod queue;
mod rights;
mod webhooks;

use std::{path::PathBuf, sync::Arc};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    config::{Config, Environment, Flags},
};

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub status: Status,
    pub what: String,
    pub why: &'static str,
    /// The command, or the sentence, that mends it. Empty when nothing is to be mended.
    pub mend: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// Runs every check, or those that come before `stop`.
pub async fn examine(
    environment: &Environment,
    flags: &Flags,
    clock: &dyn Clock,
    stop: &CancellationToken,
) -> Vec<Finding> {
    const WHY: &str = "nothing else can be checked with a configuration that cannot be read";
    let config = match Config::load(environment, flags) {
        Ok(config) => config,
        Err(problems) => {
            let what = problems.to_string().replace('\n', "\n      ");
            return vec![Finding::fail("config", what, WHY, "dalsegno config check")];
        }
    };
    let config_is_fine = Finding::ok("config", "every key is known and fits", WHY);
    let mut findings = vec![config_is_fine];
    findings.extend(agents::examine(&config));
    findings.extend(claude::examine(&config).await);
    findings.extend(ollama::examine(&config).await);
    findings.push(rights::key(&config));
    findings.extend(database::examine(&config, clock, stop).await);
    findings
}

/// Makes one real call on each login. `guard` is one of our binaries.
pub async fn smoke(
    environment: &Environment,
    flags: &Flags,
    clock: &Arc<dyn Clock>,
    guard: PathBuf,
    stop: &CancellationToken,
) -> Vec<Finding> {
    match Config::load(environment, flags) {
        Ok(config) => claude::smoke(&config, clock, guard, stop).await,
        // The examination has said so.
        Err(_) => Vec::new(),
    }
}

impl Finding {
    pub(super) fn ok(check: &'static str, what: impl Into<String>, why: &'static str) -> Self {
        Self { check, status: Status::Ok, what: what.into(), why, mend: String::new() }
    }

    pub(super) fn skipped(check: &'static str, what: impl Into<String>, why: &'static str) -> Self {
        Self { status: Status::Skipped, ..Self::ok(check, what, why) }
    }

    pub(super) fn warn(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        mend: impl Into<String>,
    ) -> Self {
        Self { status: Status::Warn, mend: mend.into(), ..Self::ok(check, what, why) }
    }

    pub(super) fn fail(
        check: &'static str,
        what: impl Into<String>,
        why: &'static str,
        mend: impl Into<String>,
    ) -> Self {
        Self { status: Status::Fail, ..Self::warn(check, what, why, mend) }
    }
}
