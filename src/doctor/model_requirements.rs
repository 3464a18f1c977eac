//! The models that agents' files name, and what the agents need of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    config::Config,
    domain::agents::{Agent, Catalogue, Provider},
    tools,
};

/// Names of the agents that use a model.
pub(super) type Users<'a> = BTreeSet<&'a str>;

/// A model that agents use, and their requirements.
#[derive(Default)]
pub(super) struct ModelRequirements<'a> {
    pub(super) users: Users<'a>,
    pub(super) with_tools: Users<'a>,
    /// The widest window that an agent's file asks for, and that agent.
    pub(super) window: Option<(i64, &'a str)>,
}

/// Collects the models of a provider: those of its agents, of fallbacks to it, and of their summaries.
pub(super) fn required_models<'a>(
    config: &'a Config,
    catalogue: &'a Catalogue,
    provider: &str,
) -> BTreeMap<&'a str, ModelRequirements<'a>> {
    let is_meant = |named: &Provider| named.as_str() == provider;
    let mut models: BTreeMap<&str, ModelRequirements<'_>> = BTreeMap::new();
    let usual = is_meant(&config.agents.provider).then_some(&*config.agents.model);
    for agent in catalogue.agents() {
        if is_meant(agent.provider.as_ref().unwrap_or(&config.agents.provider)) {
            if let Some(model) = agent.model.as_deref().or(usual) {
                models.entry(model).or_default().add(agent);
            }
            if let Some(model) = agent.summariser.as_deref() {
                models.entry(model).or_default().users.insert(&agent.name);
            }
        }
        let fallback = agent.fallback.as_ref().filter(|it| is_meant(&it.provider));
        if let Some(model) = fallback.and_then(|it| it.model.as_deref().or(usual)) {
            models.entry(model).or_default().add(agent);
        }
    }
    models
}

impl<'a> ModelRequirements<'a> {
    fn add(&mut self, agent: &'a Agent) {
        self.users.insert(&agent.name);
        if tools::are_granted(&agent.grants) {
            self.with_tools.insert(&agent.name);
        }
        let window = agent.window_tokens.map(|tokens| (tokens, &*agent.name));
        self.window = self.window.max(window);
    }
}

pub(super) fn list(names: &Users<'_>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}
