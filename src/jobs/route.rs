//! Who answers in a conversation, and with how much room.

use tokio_util::sync::CancellationToken;

use super::Services;
use crate::{
    context::{Budget, Thresholds},
    domain::{
        agents::{self, Agent},
        failovers::Side,
        prices::Price,
    },
    providers::{Options, Provider, Think},
};

pub(super) struct Route<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) provider_name: String,
    pub(super) model: String,
    /// What to plan with. Less than the model has where the provider keeps the conversation: there is no making it smaller,
    /// only going on in a new one, and that before it is full.
    pub(super) window_tokens: u64,
    /// What the agent has of the model's window.
    pub(super) model_window_tokens: u64,
    pub(super) keeps_conversation: bool,
    pub(super) reserve_tokens: u64,
    pub(super) thresholds: Thresholds,
    pub(super) options: Options,
    pub(super) price: Option<&'a Price>,
}

impl<'a> Route<'a> {
    /// As the agent's file says now. The error is for the person who wrote it.
    pub(super) async fn of_agent(
        services: &'a Services,
        agent: &Agent,
        side: Side,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let (provider, model) = match (side, &agent.fallback) {
            (Side::Fallback, Some(fallback)) => services.fallback_route(fallback),
            _ => services.route(agent),
        };
        let provider = provider.as_str();
        let model = model.ok_or_else(|| {
            format!(
                "the file of agent `{}` names the provider {provider} and no model: add `model:` to it, or `fallback_model:` \
                 for its fallback",
                agent.name
            )
        })?;
        Self::of(services, agent, provider, &model, cancel).await
    }

    /// May ask the provider for the model's window, so no transaction may be open.
    pub(super) async fn of(
        services: &'a Services,
        agent: &Agent,
        provider_name: &str,
        model: &str,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let known = services.providers.window_tokens(provider_name, model, cancel).await;
        let (Some(provider), Some(known)) = (services.providers.named(provider_name), known) else {
            return Err(format!(
                "agent `{}` runs on {provider_name}, which this version does not have: name another provider in its file",
                agent.name
            ));
        };
        // The agent may want less of the window than there is, never more.
        let wanted = agent.window_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        let window_tokens = wanted.map_or(u64::from(known), |wanted| wanted.min(u64::from(known)));
        let reserve = agent.reserve_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        let reserve_tokens = reserve.unwrap_or_else(|| Budget::default_reserve(window_tokens));
        let thresholds = thresholds(agent)?;
        let keeps_conversation = provider_name == agents::Provider::Claude.as_str();
        let model_window_tokens = window_tokens;
        let window_tokens = match keeps_conversation {
            true => rollover_window(services, agent, window_tokens, reserve_tokens, thresholds),
            false => window_tokens,
        };
        Ok(Self {
            provider,
            provider_name: provider_name.to_owned(),
            model: model.to_owned(),
            window_tokens,
            model_window_tokens,
            keeps_conversation,
            reserve_tokens,
            thresholds,
            options: options(&agent.options),
            price: services.price(provider_name, model),
        })
    }
}

/// The window in which the threshold for a compaction is where the conversation has to go on in a new session.
fn rollover_window(
    services: &Services,
    agent: &Agent,
    window_tokens: u64,
    reserve_tokens: u64,
    thresholds: Thresholds,
) -> u64 {
    let percent = u64::from(services.providers.claude().config().rollover_percent);
    let own = agent.rotate_at_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let full_at = own.unwrap_or(window_tokens * percent / 100);
    let planned = full_at.saturating_mul(100) / thresholds.apply_percent();
    planned.saturating_add(reserve_tokens).min(window_tokens)
}

fn thresholds(agent: &Agent) -> Result<Thresholds, String> {
    let usual = Thresholds::default();
    let percent =
        |own: Option<i64>, usual| own.and_then(|own| u64::try_from(own).ok()).unwrap_or(usual);
    let prepare = percent(agent.prepare_percent, usual.prepare_percent());
    let apply = percent(agent.apply_percent, usual.apply_percent());
    Thresholds::new(prepare, apply).map_err(|error| error.to_string())
}

fn options(options: &agents::Options) -> Options {
    Options {
        temperature: options.temperature.map(|value| value as f32),
        top_p: options.top_p.map(|value| value as f32),
        seed: options.seed,
        think: options.think.map(|think| match think {
            agents::Think::Off => Think::Off,
            agents::Think::On => Think::On,
            agents::Think::Low => Think::Low,
            agents::Think::Medium => Think::Medium,
            agents::Think::High => Think::High,
        }),
        ..Options::default()
    }
}
