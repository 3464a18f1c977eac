//! Check for models without a price.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::{
    config::Config,
    domain::{
        agents::{Agent, Catalogue, Provider},
        prices::list_price,
        text::count,
    },
    providers::claude::{self, is_same_model},
};

const CHECK: &str = "prices";
const WHY: &str = "the cost of a turn on a model without a price cannot be estimated";

/// Names the models without a configured or published price, with the agents that use them.
pub(super) fn examine(config: &Config) -> Finding {
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let mut unpriced: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for agent in catalogue.agents() {
        for (provider, model) in models(config, agent) {
            if !is_priced(config, &provider, &model) {
                let model = format!("{model} on {}", provider.as_str());
                unpriced.entry(model).or_default().insert(&agent.name);
            }
        }
    }
    if unpriced.is_empty() {
        return Finding::ok(CHECK, "every model has a price", WHY);
    }
    let users = |(model, users): (&String, &BTreeSet<&str>)| {
        format!("{model} ({})", users.iter().copied().collect::<Vec<_>>().join(", "))
    };
    let has_none = count(unpriced.len(), "model has no price", "models have no price");
    let models = unpriced.iter().map(users).collect::<Vec<_>>().join(", ");
    let fix = "add them to prices.models; `dalsegno config template` shows how";
    Finding::warn(CHECK, format!("{has_none}: {models}"), WHY, fix)
}

/// Lists the models that the agent may call, without defaults of providers.
fn models(config: &Config, agent: &Agent) -> Vec<(Provider, String)> {
    let first = agent.first_provider(&config.agents);
    let summariser = agent.summariser.as_deref().map(|model| (first, Some(model)));
    let named = agent.models(&config.agents).chain(summariser);
    named.filter_map(|(provider, model)| Some((provider.clone(), model?.to_owned()))).collect()
}

fn is_priced(config: &Config, provider: &Provider, model: &str) -> bool {
    let is_claude = provider.as_str() == claude::NAME;
    let is_same = |other: &str| {
        other == model || is_claude && (is_same_model(other, model) || is_same_model(model, other))
    };
    let mut own = config.prices.models.iter().filter(|price| price.provider == provider.as_str());
    own.any(|price| is_same(&price.model))
        || list_price(provider.as_str(), model, &config.prices.currency, is_same).is_some()
}
