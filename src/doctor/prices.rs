//! Check for models without a price.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        agents::{Agent, Catalogue, Provider},
        costs::{self, CostReport, Dimension, Question},
        prices::{UnpricedModel, list_price},
        text::count,
        transaction::begin_search,
    },
    providers::claude::{self, is_same_model},
};

const CHECK: &str = "prices";
const ALL_PRICED: &str = "each model that agents name has a price in this configuration; running processes use the one that they read at their start";
const WHY: &str = "the cost of a turn on a model without a price cannot be estimated";
const CALLS: &str = "unpriced calls";
const WHY_CALLS: &str = "calls without a price count as 0 in costs and budgets";
const LONGEST: Duration = Duration::from_secs(10);
/// Most models that are named.
const MAX_NAMED: usize = 5;

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
        return Finding::ok(CHECK, ALL_PRICED, WHY);
    }
    let users = |(model, users): (&String, &BTreeSet<&str>)| {
        format!("{model} ({})", users.iter().copied().collect::<Vec<_>>().join(", "))
    };
    let has_none = count(unpriced.len(), "model has no price", "models have no price");
    let models = unpriced.iter().map(users).collect::<Vec<_>>().join(", ");
    let fix = "add them to prices.models; `dalsegno config template` shows how";
    Finding::warn(CHECK, format!("{has_none}: {models}"), WHY, fix)
}

/// Names the models of recent calls that had no price, as the pages of costs count them. `None`: there are none, or they have a price by now.
pub(super) async fn calls(config: &Config, pool: &PgPool, now: DateTime<Utc>) -> Option<Finding> {
    let report = match report(config, pool, now).await {
        Ok(report) => report,
        Err(error) => {
            let fix = "`dalsegno cost --by model` makes such a report";
            return Some(Finding::warn(CALLS, error.to_string(), WHY_CALLS, fix));
        }
    };
    let prices = &config.prices;
    let (free, charged) = report.unpriced_models(&prices.models);
    if charged.is_empty() {
        let what = || {
            format!(
                "calls of {} count as 0, and nothing has to be set: their provider publishes that they cost nothing",
                names(&free)
            )
        };
        return (!free.is_empty()).then(|| Finding::ok(CALLS, what(), WHY_CALLS));
    }
    let has_none = count(charged.len(), "model has no price", "models have no price");
    let days = costs::UNPRICED_WITHIN.num_days();
    let mut what = format!("{has_none} in calls of the last {days} days: {}", names(&charged));
    if !free.is_empty() {
        what.push_str(&format!("; free, with nothing to set: {}", names(&free)));
    }
    let entries: Vec<_> =
        charged.iter().take(MAX_NAMED).map(|it| it.entry(&prices.currency)).collect();
    let fix = format!(
        "add to `models` below `[prices]`, with the prices of the provider in place of these: `{}`; the page Installation of the console shows the whole section",
        entries.join(", ")
    );
    Some(Finding::warn(CALLS, what, WHY_CALLS, fix))
}

async fn report(
    config: &Config,
    pool: &PgPool,
    now: DateTime<Utc>,
) -> Result<CostReport, costs::Error> {
    let question = Question {
        by: Dimension::Provider,
        and: Some(Dimension::Model),
        top: None,
        time_zone: &config.scheduler.time_zone,
        since: Some(now - costs::UNPRICED_WITHIN),
        until: None,
        campaign_id: None,
        within: None,
    };
    let mut transaction = begin_search(pool, Some(LONGEST)).await?;
    costs::report(&mut transaction, &question, &config.prices.currency).await
}

fn names(models: &[UnpricedModel]) -> String {
    let name = |it: &UnpricedModel| format!("{} on {}", it.model, it.provider);
    let mut named: Vec<String> = models.iter().take(MAX_NAMED).map(name).collect();
    if models.len() > MAX_NAMED {
        named.push(format!("{} more", models.len() - MAX_NAMED));
    }
    named.join(", ")
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
