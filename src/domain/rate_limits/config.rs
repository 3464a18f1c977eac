//! The section `[rate_limits]`.

use serde::Deserialize;
use uuid::Uuid;

use super::{CallScope, Measure, RateLimit};
use crate::settings::Checks;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub rules: Vec<Rule>,
}

/// Limits of the calls that have all the named properties. A missing property stands for all calls together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    pub provider: Option<String>,
    pub model: Option<String>,
    /// Name of a credential, or the variable or file with the key of an endpoint.
    pub credential: Option<String>,
    /// Id of a campaign, or `*`: each campaign has limits of its own.
    pub campaign: Option<String>,
    pub requests_per_minute: Option<u64>,
    pub input_tokens_per_minute: Option<u64>,
    pub output_tokens_per_minute: Option<u64>,
    pub concurrent_calls: Option<u64>,
}

/// The campaign of a rule whose limits each campaign has for itself.
const EACH: &str = "*";
const KEY: &str = "rate_limits.rules";
/// End of the keys of limits that providers tell.
const TOLD: &str = " told";

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        for (at, rule) in self.rules.iter().enumerate() {
            if rule.amounts().any(|(_, amount)| amount == 0) {
                let message = format!("has a limit of 0 in entry {at}");
                checks.fail(KEY, message, "1 or more; leave a limit out to have none");
            }
            let campaign = rule.campaign.as_deref().unwrap_or(EACH);
            if campaign != EACH && campaign.parse::<Uuid>().is_err() {
                let message = format!("names the campaign `{campaign}` in entry {at}");
                checks.fail(KEY, message, "the id of a campaign, or `*` for each campaign");
            }
            let selectors = |rule: &Rule| {
                let Rule { provider, model, credential, campaign, .. } = rule.clone();
                (provider, model, credential, campaign)
            };
            if self.rules[..at].iter().any(|other| selectors(other) == selectors(rule)) {
                let message = format!("limits the same calls in entry {at} as in an earlier one");
                checks.fail(KEY, message, "all limits of these calls in one entry");
            }
            if rule.amounts().next().is_none() && rule.provider.is_none() {
                let message = format!("has neither a limit nor a provider in entry {at}");
                checks.fail(KEY, message, "a limit, or a provider that tells its limits");
            }
        }
    }

    /// Lists the limits of a call, those of its campaign first. `told` are the limits that the provider tells, which count only where a
    /// rule holds for the call. `None`: no rule holds.
    pub fn limits_of(
        &self,
        call: CallScope<'_>,
        told: &[(Measure, f64)],
    ) -> Option<Vec<RateLimit>> {
        let mut rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.holds(call)).collect();
        if rules.is_empty() {
            return None;
        }
        rules.sort_by_key(|rule| match rule.campaign.as_deref() {
            Some(EACH) => 1,
            Some(_) => 0,
            None => 2,
        });
        let mut limits: Vec<RateLimit> = Vec::new();
        for limit in rules.into_iter().flat_map(|rule| rule.limits(call)) {
            // The rule of a campaign takes the place of the one for each campaign.
            if limits.iter().all(|known| known.key != limit.key) {
                limits.push(limit);
            }
        }
        limits.extend(told.iter().map(|&of| RateLimit::told(call, of)));
        Some(limits)
    }
}

impl Rule {
    fn holds(&self, call: CallScope<'_>) -> bool {
        let is = |own: &Option<String>, of_call: Option<&str>| match own {
            Some(own) => Some(own.as_str()) == of_call,
            None => true,
        };
        let is_of_campaign = match self.campaign.as_deref() {
            None | Some(EACH) => true,
            Some(id) => id.parse() == Ok(call.campaign_id),
        };
        is_of_campaign
            && is(&self.provider, Some(call.provider))
            && is(&self.model, Some(call.model))
            && is(&self.credential, call.credential)
    }

    fn limits(&self, call: CallScope<'_>) -> impl Iterator<Item = RateLimit> {
        let campaign = self.campaign.as_ref().map(|_| call.campaign_id);
        let (provider, model) = (self.provider.as_deref(), self.model.as_deref());
        let credential = self.credential.as_deref();
        self.amounts().map(move |(measure, amount)| {
            RateLimit::new(provider, model, credential, campaign, (measure, amount as f64))
        })
    }

    fn amounts(&self) -> impl Iterator<Item = (Measure, u64)> + use<> {
        let amounts = [
            self.requests_per_minute,
            self.input_tokens_per_minute,
            self.output_tokens_per_minute,
            self.concurrent_calls,
        ];
        let named = Measure::ALL.into_iter().zip(amounts);
        named.filter_map(|(measure, amount)| Some((measure, amount?)))
    }
}

impl RateLimit {
    /// Builds a limit that the provider tells. It is that of one model and one credential.
    pub fn told(call: CallScope<'_>, of: (Measure, f64)) -> Self {
        let told = Self::new(Some(call.provider), Some(call.model), call.credential, None, of);
        Self { key: format!("{}{TOLD}", told.key), ..told }
    }

    /// Returns true if the provider tells the limit.
    pub(super) fn is_told(&self) -> bool {
        self.key.ends_with(TOLD)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(rules: &serde_json::Value) -> Config {
        serde_json::from_value(json!({ "rules": rules })).unwrap()
    }

    fn call(provider: &'static str, model: &'static str) -> CallScope<'static> {
        CallScope { provider, model, credential: Some("KEY"), campaign_id: Uuid::from_u128(7) }
    }

    fn keys(config: &Config, call: CallScope<'_>) -> Vec<String> {
        let limits = config.limits_of(call, &[]).unwrap_or_default();
        limits.into_iter().map(|limit| limit.key).collect()
    }

    #[test]
    fn a_call_has_the_limits_of_all_rules_that_hold_for_it() {
        let config = config(&json!([
            { "provider": "openai", "requests_per_minute": 600 },
            { "provider": "openai", "model": "gpt-5", "input_tokens_per_minute": 20000, "concurrent_calls": 4 },
            { "credential": "KEY", "output_tokens_per_minute": 9 },
            { "campaign": "*", "requests_per_minute": 60 },
            { "campaign": "00000000-0000-0000-0000-000000000008", "requests_per_minute": 1 },
        ]));
        let expected = [
            "* * * 00000000-0000-0000-0000-000000000007 requests",
            "openai * * * requests",
            "openai gpt-5 * * input_tokens",
            "openai gpt-5 * * concurrent_calls",
            "* * KEY * output_tokens",
        ];
        assert_eq!(keys(&config, call("openai", "gpt-5")), expected);
        let other = CallScope { credential: None, ..call("local", "m") };
        assert_eq!(keys(&config, other), expected[..1]);
    }

    #[test]
    fn the_rule_of_a_campaign_replaces_the_one_for_each_campaign() {
        let own = "00000000-0000-0000-0000-000000000007";
        let config = config(&json!([
            { "campaign": "*", "requests_per_minute": 60, "concurrent_calls": 9 },
            { "campaign": own, "requests_per_minute": 5 },
        ]));
        let limits = config.limits_of(call("openai", "gpt-5"), &[]).unwrap();
        let limits: Vec<_> = limits.iter().map(|limit| (limit.measure, limit.amount)).collect();
        assert_eq!(limits, [(Measure::Requests, 5.0), (Measure::ConcurrentCalls, 9.0)]);
    }

    #[test]
    fn told_limits_count_only_where_a_rule_holds() {
        let config = config(&json!([{ "provider": "openai" }]));
        let told = [(Measure::Requests, 500.0)];
        let limits = config.limits_of(call("openai", "gpt-5"), &told).unwrap();
        assert_eq!(limits[0].key, "openai gpt-5 KEY * requests told");
        assert_eq!(config.limits_of(call("local", "gpt-5"), &told), None);
    }
}
