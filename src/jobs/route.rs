//! The route of a conversation: its provider, model and window.

use tokio_util::sync::CancellationToken;

use super::Services;
use crate::{
    context::{Budget, Thresholds},
    domain::{
        agents::{self, Agent},
        prices::Price,
    },
    providers::{Options, Provider, Think},
};

pub(super) struct Route<'a> {
    pub(super) provider: &'a dyn Provider,
    pub(super) provider_name: String,
    pub(super) model: String,
    /// Window that turns plan with. Smaller than the model's where the conversation continues in a new session before
    /// its window is full: at a configured limit, or where the provider keeps the conversation and it cannot be made
    /// smaller.
    pub(super) window_tokens: u64,
    /// A compacted conversation continues in a new session.
    pub(super) rotates: bool,
    /// The agent's share of the model's window.
    pub(super) model_window_tokens: u64,
    pub(super) reserve_tokens: u64,
    pub(super) thresholds: Thresholds,
    pub(super) options: Options,
    pub(super) price: Option<&'a Price>,
}

impl<'a> Route<'a> {
    /// Builds the route of an entry of the agent's chain, from its file as it is now. An error is addressed to the author of that file.
    pub(super) async fn of_agent(
        services: &'a Services,
        agent: &Agent,
        at: usize,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let (provider, model) = agent
            .chain
            .get(at)
            .map_or_else(|| services.route(agent), |entry| services.entry_route(entry));
        let provider = provider.as_str();
        let model = model.ok_or_else(|| {
            format!(
                "the file of agent `{}` names the provider {provider} without a model: add `model:`, or write `{provider}/MODEL` in its list of models",
                agent.name
            )
        })?;
        Self::of(services, agent, provider, &model, cancel).await
    }

    /// Builds the route for a model. May ask the provider for its window, so no transaction may be open.
    pub(super) async fn of(
        services: &'a Services,
        agent: &Agent,
        provider_name: &str,
        model: &str,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let Some(provider) = services.providers.find(provider_name) else {
            return Err(format!(
                "agent `{}` uses the provider {provider_name}, which this version does not support: name another provider in its file",
                agent.name
            ));
        };
        let known = provider.window_tokens(model, cancel).await;
        // An agent may use less than the model's window, but not more.
        let wanted = agent.window_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        let window_tokens = wanted.map_or(u64::from(known), |wanted| wanted.min(u64::from(known)));
        let reserve = agent.reserve_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        let reserve_tokens = reserve.unwrap_or_else(|| Budget::default_reserve(window_tokens));
        let thresholds = thresholds(agent)?;
        let model_window_tokens = window_tokens;
        let full_at = provider.rollover_percent().map(|percent| window_tokens * percent / 100);
        let full_at = full_at.into_iter().chain(rotate_at_tokens(services, agent)).min();
        let planned = full_at.map(|full_at| planned_window(full_at, reserve_tokens, thresholds));
        let window_tokens = planned.map_or(window_tokens, |planned| planned.min(window_tokens));
        let rotates = provider.holds_session() || window_tokens < model_window_tokens;
        Ok(Self {
            provider,
            provider_name: provider_name.to_owned(),
            model: model.to_owned(),
            window_tokens,
            rotates,
            model_window_tokens,
            reserve_tokens,
            thresholds,
            options: options(&agent.options),
            price: services.price(provider_name, model),
        })
    }
}

/// Returns the size at which the conversation continues in a new session, even if its window has room. `None`: no
/// limit.
fn rotate_at_tokens(services: &Services, agent: &Agent) -> Option<u64> {
    let own = agent.rotate_at_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    Some(own.unwrap_or(services.sessions.rotate_at_tokens)).filter(|tokens| *tokens > 0)
}

/// Computes the window whose compaction threshold is at `full_at_tokens`.
fn planned_window(full_at_tokens: u64, reserve_tokens: u64, thresholds: Thresholds) -> u64 {
    let planned = full_at_tokens.saturating_mul(100) / thresholds.apply_percent();
    planned.saturating_add(reserve_tokens)
}

fn thresholds(agent: &Agent) -> Result<Thresholds, String> {
    let usual = Thresholds::default();
    let percent =
        |own: Option<i64>, usual| own.and_then(|own| u64::try_from(own).ok()).unwrap_or(usual);
    let prepare = percent(agent.prepare_percent, usual.prepare_percent());
    let apply = percent(agent.apply_percent, usual.apply_percent());
    Thresholds::new(prepare, apply).map_err(|error| error.to_string())
}

pub(super) fn options(options: &agents::Options) -> Options {
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
