//! `dalsegno doctor`: problems of this installation, and the commands that solve them.
//!
//! Each check yields findings. A check that cannot run because an earlier one failed is reported as skipped. A new
//! component adds its checks here.

mod agents;
mod budgets;
mod busy;
mod claude;
mod cleanup;
mod database;
mod embeddings;
mod endpoints;
mod model_requirements;
mod ollama;
mod prices;
mod queue;
mod rate_limits;
mod rights;
mod webhooks;

use std::{path::PathBuf, sync::Arc};

use tokio_util::sync::CancellationToken;

pub use crate::domain::findings::{Examination, Finding, Status};
use crate::{
    clock::Clock,
    config::Config,
    settings::{Environment, Flags},
};

const WHY: &str = "without a valid configuration, nothing else can be checked";

/// Runs all checks. Checks of the database end at `stop`.
pub async fn examine(
    environment: &Environment,
    flags: &Flags,
    clock: &dyn Clock,
    stop: &CancellationToken,
) -> Vec<Finding> {
    let config = match Config::load(environment, flags) {
        Ok(config) => config,
        Err(problems) => {
            let what = problems.to_string().replace('\n', "\n      ");
            return vec![Finding::fail("config", what, WHY, "dalsegno config check")];
        }
    };
    examine_loaded(&config, clock, stop).await
}

/// Returns the checks of a process with its configuration, for `GET /v1/doctor`.
pub fn examination(config: &Config, clock: Arc<dyn Clock>, stop: CancellationToken) -> Examination {
    let config = Arc::new(config.clone());
    Examination::of(move || {
        let (config, clock, stop) = (Arc::clone(&config), Arc::clone(&clock), stop.clone());
        Box::pin(async move { examine_loaded(&config, &*clock, &stop).await })
    })
}

async fn examine_loaded(
    config: &Config,
    clock: &dyn Clock,
    stop: &CancellationToken,
) -> Vec<Finding> {
    let config_is_fine = Finding::ok("config", "every key is known, and every value is valid", WHY);
    let mut findings = vec![config_is_fine];
    findings.extend(agents::examine(config));
    findings.extend(claude::examine(config).await);
    findings.extend(ollama::examine(config).await);
    findings.extend(endpoints::examine(config).await);
    findings.extend(rate_limits::examine(config));
    findings.push(prices::examine(config));
    findings.push(rights::key(config));
    findings.extend(Box::pin(database::examine(config, clock, stop)).await);
    findings
}

/// Makes one real call with each credential. `guard` is the path of one of our binaries.
pub async fn smoke(
    environment: &Environment,
    flags: &Flags,
    clock: &Arc<dyn Clock>,
    guard: PathBuf,
    stop: &CancellationToken,
) -> Vec<Finding> {
    match Config::load(environment, flags) {
        Ok(config) => claude::smoke(&config, clock, guard, stop).await,
        // `examine` has reported the problems.
        Err(_) => Vec::new(),
    }
}
