//! Check for rate limits that hold for no call, because a name is wrong.

use std::collections::BTreeSet;

use super::Finding;
use crate::{
    config::Config,
    domain::{agents::Catalogue, rate_limits::Rule},
};

const CHECK: &str = "rate limits";
const WHY: &str = "an entry of rate_limits.rules with a wrong name limits no call";

/// Names the entries whose provider, model or credential no call has. Without rules there is no finding.
pub(super) fn examine(config: &Config) -> Option<Finding> {
    let rules = &config.rate_limits.rules;
    if rules.is_empty() {
        return None;
    }
    let catalogue = Catalogue::load(&config.agents).unwrap_or_default();
    let names = KnownNames::of(config, &catalogue);
    let wrong = rules.iter().enumerate().filter_map(|(at, rule)| names.describe_wrong(at, rule));
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() {
        let what = format!("each of the {} entries names calls that exist", rules.len());
        return Some(Finding::ok(CHECK, what, WHY));
    }
    let fix = format!(
        "correct rate_limits.rules: the providers are {}; the models are those of the agents' files",
        list(&names.providers)
    );
    Some(Finding::warn(CHECK, wrong.join("; "), WHY, fix))
}

/// The names that rules may have.
struct KnownNames<'a> {
    providers: BTreeSet<&'a str>,
    /// Provider and model of the chains of agents and of their summaries. No model: the default of the provider.
    models: BTreeSet<(&'a str, Option<&'a str>)>,
    credentials: BTreeSet<&'a str>,
}

impl<'a> KnownNames<'a> {
    fn of(config: &'a Config, catalogue: &'a Catalogue) -> Self {
        let mut models = BTreeSet::new();
        for agent in catalogue.agents() {
            let first = agent.first_provider(&config.agents).as_str();
            let named = agent.models(&config.agents);
            models.extend(named.map(|(provider, model)| (provider.as_str(), model)));
            models.extend(agent.summariser.as_deref().map(|model| (first, Some(model))));
        }
        let of_claude = config.claude.credentials.iter().map(|it| it.name.as_str());
        let of_endpoints = config.endpoints.iter().filter_map(|it| it.credential_name());
        Self {
            providers: config.agents.known_providers.iter().map(|it| it.as_str()).collect(),
            models,
            credentials: of_claude.chain(of_endpoints).collect(),
        }
    }

    fn describe_wrong(&self, at: usize, rule: &Rule) -> Option<String> {
        let Rule { provider, model, credential, .. } = rule;
        if let Some(provider) = provider.as_deref().filter(|it| !self.providers.contains(it)) {
            return Some(format!("entry {at} names the provider `{provider}`, which is unknown"));
        }
        // The default model of a provider is not named anywhere.
        let is_used = |model: &str| {
            let of_rule = |of: &str| provider.as_deref().is_none_or(|provider| provider == of);
            self.models.iter().any(|(of, known)| of_rule(of) && known.is_none_or(|it| it == model))
        };
        if let Some(model) = model.as_deref().filter(|model| !is_used(model)) {
            let of = provider.as_ref().map(|of| format!(" of {of}")).unwrap_or_default();
            return Some(format!("entry {at} names the model `{model}`{of}, which no agent uses"));
        }
        let credential = credential.as_deref().filter(|it| !self.credentials.contains(it))?;
        Some(format!("entry {at} names the credential `{credential}`, which is unknown"))
    }
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}
