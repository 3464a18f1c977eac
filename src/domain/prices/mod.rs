//! Prices of models: a list in the configuration, from which each call gets its cost when it is recorded.

mod comparison;
mod list;
mod template;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    comparison::incomparable_costs,
    list::{ListPrice, list_price},
    template::{UnpricedModel, template},
};
use super::{Amount, usage::Tokens};
use crate::settings::Checks;

const MILLION: i128 = 1_000_000;
/// Percentage of the price that providers with a batch API charge for its calls.
const BATCH_PERCENT: u8 = 50;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The label of all amounts of money.
    pub currency: String,
    pub models: Vec<Price>,
}

/// Price of a model, in millionths of the currency per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub provider: String,
    pub model: String,
    pub input: i64,
    pub output: i64,
    /// Price of tokens read from the cache. The default is `input`.
    #[serde(default)]
    pub cache_read: Option<i64>,
    #[serde(default)]
    pub cache_creation: Option<i64>,
    /// Percentage of these prices that a call costs which is sent as a batch. The default is 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_percent: Option<u8>,
}

/// The cost of a call and the price that it was computed with. Without a price the cost is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    pub micros: i64,
    pub price: Option<Value>,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        let is_short = (1..=8).contains(&self.currency.chars().count());
        if !is_short || self.currency.chars().any(|one| one.is_whitespace() || one.is_control()) {
            let message = format!("is `{}`", self.currency.escape_debug());
            checks.fail("prices.currency", message, "a label of 1 to 8 characters, such as USD");
        }
        for (at, price) in self.models.iter().enumerate() {
            let counts =
                [Some(price.input), Some(price.output), price.cache_read, price.cache_creation];
            if counts.into_iter().flatten().any(|count| count < 0) {
                checks.fail(
                    "prices.models",
                    format!("has a negative price in entry {at}"),
                    "0 or more",
                );
            }
            if price.batch_percent.is_some_and(|percent| percent > 100) {
                let message = format!("has a batch_percent above 100 in entry {at}");
                checks.fail("prices.models", message, "0 to 100");
            }
            let same =
                |other: &Price| other.provider == price.provider && other.model == price.model;
            if self.models[..at].iter().any(same) {
                let message = format!("names {} of {} twice", price.model, price.provider);
                checks.fail("prices.models", message, "one price for each model");
            }
        }
    }

    /// Returns the price of a model, or None if its calls cost nothing.
    pub fn of(&self, provider: &str, model: &str) -> Option<&Price> {
        self.models.iter().find(|price| price.provider == provider && price.model == model)
    }
}

impl Price {
    /// Computes the cost of these tokens, rounded up. Unknown counts cost nothing.
    pub fn cost_micros(&self, tokens: Tokens) -> i64 {
        let parts = [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.cache_read.unwrap_or(self.input)),
            (tokens.cache_creation, self.cache_creation.unwrap_or(self.input)),
        ];
        let sum: i128 = parts
            .into_iter()
            .map(|(n, price)| i128::from(n.unwrap_or(0)) * i128::from(price))
            .sum();
        i64::try_from((sum + MILLION - 1) / MILLION).unwrap_or(i64::MAX)
    }

    /// Returns the price of calls that are sent as batches, rounded up.
    pub fn of_batches(&self) -> Self {
        let percent = i64::from(self.batch_percent.unwrap_or(BATCH_PERCENT));
        let part = |price: i64| price.saturating_mul(percent).saturating_add(99) / 100;
        Self {
            input: part(self.input),
            output: part(self.output),
            cache_read: self.cache_read.map(part),
            cache_creation: self.cache_creation.map(part),
            // It is in the prices now.
            batch_percent: None,
            ..self.clone()
        }
    }

    pub fn is_free(&self) -> bool {
        let Self { input, output, cache_read, cache_creation, .. } = self;
        *input == 0
            && *output == 0
            && [cache_read, cache_creation].iter().all(|it| it.unwrap_or(0) == 0)
    }

    /// Returns the highest possible cost of a call of these sizes.
    pub fn ceiling(price: Option<&Self>, prompt_tokens: i64, answer_tokens: i64) -> Amount {
        let dearest = |price: &Self| {
            let input = [Some(price.input), price.cache_read, price.cache_creation];
            let input = input.into_iter().flatten().max().unwrap_or(0);
            Self { input, ..price.clone() }
        };
        let tokens =
            Tokens { input: Some(prompt_tokens), output: Some(answer_tokens), ..Tokens::default() };
        Amount {
            micros: price.map_or(0, |price| dearest(price).cost_micros(tokens)),
            tokens: prompt_tokens.saturating_add(answer_tokens),
        }
    }

    /// Returns the price as the ledger stores it.
    pub fn to_ledger_json(&self) -> Value {
        serde_json::json!(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price() -> Price {
        Price {
            provider: "ollama".to_owned(),
            model: "m".to_owned(),
            input: 1_000_000,
            output: 5_000_000,
            cache_read: Some(100_000),
            cache_creation: None,
            batch_percent: None,
        }
    }

    #[test]
    fn batches_cost_half_unless_the_configuration_says_otherwise() {
        let half = price().of_batches();
        let prices = (half.input, half.output, half.cache_read, half.cache_creation);
        assert_eq!(prices, (500_000, 2_500_000, Some(50_000), None));
        let dear = Price { input: 3, batch_percent: Some(80), ..price() };
        assert_eq!(dear.of_batches().input, 3);
    }

    #[test]
    fn each_kind_of_token_has_its_price_and_fractions_round_up() {
        let tokens = Tokens {
            input: Some(10),
            output: Some(2),
            cache_read: Some(1),
            cache_creation: Some(3),
        };
        assert_eq!(price().cost_micros(tokens), 10 + 10 + 1 + 3);
        assert_eq!(price().cost_micros(Tokens::default()), 0);
    }

    #[test]
    fn a_reservation_covers_the_cost_regardless_of_cache_hits() {
        let dear = Price { cache_creation: Some(2_000_000), ..price() };
        assert_eq!(Price::ceiling(Some(&dear), 10, 2), Amount { micros: 30, tokens: 12 });
        assert_eq!(Price::ceiling(None, 10, 2), Amount { micros: 0, tokens: 12 });
    }
}
