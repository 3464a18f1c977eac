//! The setting of a fold, for a waiting turn and for the job that prepares ahead.

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Claimant, Folder};
use crate::{
    context::{Weight, compaction::Policy},
    domain::{
        agents::{Agent, Catalogue},
        prices::Cost,
        usage::Tokens,
    },
    jobs::{route::Route, services::Services},
    providers::Timeouts,
    queue::Run,
};

/// Weight beside the conversation: the system part, and the additions of the coming turn.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FixedWeight {
    pub system: Weight,
    pub upcoming: Weight,
}

/// Returns the narrowest window of the possible summarisers. May ask the provider.
pub async fn summariser_window(
    agent: &Agent,
    route: &Route<'_>,
    cancel: &CancellationToken,
) -> u64 {
    let alternate = match &agent.summariser {
        Some(model) => Some(route.provider.window_tokens(model, cancel).await),
        None => None,
    };
    alternate.map_or(route.window_tokens, |alternate| route.window_tokens.min(alternate.into()))
}

/// A new session starts below half of the size at which its own successor would start.
fn start_percent(route: &Route<'_>) -> u64 {
    if route.rotates { route.thresholds.apply_percent() / 2 } else { 100 }
}

/// Returns the policy of a conversation on this route.
pub fn policy(services: &Services, route: &Route<'_>) -> Policy {
    Policy {
        keep_prompts_percent: services.compaction.keep_prompts_percent,
        start_percent: start_percent(route),
        ..Policy::default()
    }
}

pub fn build_folder<'a>(
    run: &'a Run,
    services: &'a Services,
    (agent, catalogue): (&'a Agent, &'a Catalogue),
    route: &'a Route<'_>,
    around: FixedWeight,
    summariser_window_tokens: u64,
    cost: &'a (dyn Fn(&str, Tokens) -> Cost + Sync),
) -> Folder<'a> {
    Folder {
        pool: run.pool(),
        clock: &*services.clock,
        cancel: run.cancel(),
        claimant: Claimant::from(run),
        waiting: None,
        waiting_node: None,
        catalogue,
        provider: route.provider,
        alternate_model: agent.summariser.as_deref(),
        window_tokens: route.window_tokens,
        reserve_tokens: route.reserve_tokens,
        summariser_window_tokens,
        system_weight: around.system,
        upcoming_weight: around.upcoming,
        policy: policy(services, route),
        timeouts: Timeouts::default(),
        calibration: services.calibrations.of(&route.provider_name, &route.model),
        cost,
        busy: services.busy,
        rate_limits: &services.rate_limits,
    }
}
