//! The models that agents' files name, and what the agents need of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    config::Config,
    domain::agents::{Agent, Catalogue},
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

/// Collects the models of a provider: those of the chains of agents, and of their summaries.
pub(super) fn required_models<'a>(
    config: &'a Config,
    catalogue: &'a Catalogue,
    provider: &str,
) -> BTreeMap<&'a str, ModelRequirements<'a>> {
    let mut models: BTreeMap<&str, ModelRequirements<'_>> = BTreeMap::new();
    for agent in catalogue.agents() {
        let of_provider = agent.models(&config.agents).filter(|(it, _)| it.as_str() == provider);
        for model in of_provider.filter_map(|(_, model)| model) {
            models.entry(model).or_default().add(agent);
        }
        let is_first = agent.first_provider(&config.agents).as_str() == provider;
        if let Some(model) = agent.summariser.as_deref().filter(|_| is_first) {
            models.entry(model).or_default().users.insert(&agent.name);
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
