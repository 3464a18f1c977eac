//! What a compaction needs, put together for a turn that waits for it and for the job that prepares one ahead.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{
    Services,
    compact_session::{self, Claimant, CompactSession, Cost, Folder},
    route::Route,
    services::no_agent,
};
use crate::{
    context::{Weight, compaction::Policy},
    domain::{
        agents::{Agent, Catalogue},
        sessions,
        usage::Tokens,
    },
    providers::Timeouts,
    queue::{End, HandlerResult, JobError, Run},
};

/// What a coming turn may weigh when nobody knows it yet: this part of the room.
const UPCOMING_DIVISOR: u64 = 10;

/// What the words around a conversation weigh: the system part, and what the coming turn adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    pub(super) system: Weight,
    pub(super) upcoming: Weight,
}

/// The handler of the job: no turn waits for it.
pub(super) async fn compact(
    job: CompactSession,
    run: Run,
    services: Arc<Services>,
) -> HandlerResult {
    let session = match sessions::look(run.pool(), job.session_id).await {
        // It has expired and was removed.
        Err(sessions::Error::Unknown(_)) => return Ok(End::Done),
        session => session.map_err(JobError::retry)?,
    };
    // Before its agent and its provider are looked for: they may be gone as well.
    if compact_session::is_over(&job, &session) {
        return Ok(End::Done);
    }
    let catalogue = services.library.current();
    let agent = catalogue.agent(&session.agent).map_err(no_agent)?;
    let (provider, model) = (session.provider.as_str(), session.model.as_str());
    let route = Route::of(&services, agent, provider, model, run.cancel()).await;
    let route = route.map_err(JobError::fail)?;
    let room = route.window_tokens.saturating_sub(route.reserve_tokens) / UPCOMING_DIVISOR;
    let skills = catalogue.skills_of(agent);
    let around = Around {
        system: Weight::of_text(&agent.prompt)
            + skills.iter().map(|skill| Weight::of_text(&skill.text)).sum(),
        upcoming: services.calibrations.of(provider, model).weight_within(room),
    };
    let window = summariser_window(&services, agent, &route, run.cancel()).await;
    let cost = |model: &str, tokens| services.cost(&route.provider_name, model, tokens);
    let whose = (&**agent, &*catalogue);
    let folder = folder(&run, &services, whose, &route, around, window, &cost);
    compact_session::compact(&folder, &job, &run).await
}

/// The narrowest window of those who may be asked for a summary. May ask the provider.
pub(super) async fn summariser_window(
    services: &Services,
    agent: &Agent,
    route: &Route<'_>,
    cancel: &CancellationToken,
) -> u64 {
    let alternate = match &agent.summariser {
        Some(model) => services.providers.window_tokens(&route.provider_name, model, cancel).await,
        None => None,
    };
    alternate.map_or(route.window_tokens, |alternate| route.window_tokens.min(alternate.into()))
}

/// A new session begins below half of the size at which the next one follows.
fn start_percent(route: &Route<'_>) -> u64 {
    if route.rotates { route.thresholds.apply_percent() / 2 } else { 100 }
}

pub(super) fn folder<'a>(
    run: &'a Run,
    services: &'a Services,
    (agent, catalogue): (&'a Agent, &'a Catalogue),
    route: &'a Route<'_>,
    around: Around,
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
        policy: Policy {
            keep_prompts_percent: services.compaction.keep_prompts_percent,
            start_percent: start_percent(route),
            ..Policy::default()
        },
        timeouts: Timeouts::default(),
        calibration: services.calibrations.of(&route.provider_name, &route.model),
        cost,
        busy: services.busy,
    }
}
