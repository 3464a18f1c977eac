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
mod finding;
mod ollama;
mod queue;
mod rights;
mod webhooks;

use std::{path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;

pub use self::finding::{Finding, Status};
use crate::{
    clock::Clock,
    config::Config,
    settings::{Environment, Flags},
};

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
