//! The setting with the prices of models, as text to copy into the configuration.

use super::{Price, list_price};

/// Prices of a model whose provider publishes none: examples, to be replaced.
const EXAMPLE: (i64, i64) = (3_000_000, 15_000_000);

/// A model without a price.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnpricedModel {
    pub provider: String,
    pub model: String,
}

impl UnpricedModel {
    /// Returns true if the provider publishes that the model costs nothing.
    pub fn is_free(&self, currency: &str) -> bool {
        self.published(currency).is_some_and(|(price, _)| price.is_free())
    }

    /// Formats an entry of `prices.models`, with published prices where they are known.
    pub fn entry(&self, currency: &str) -> String {
        let (price, _) = self.price(currency);
        entry(&price)
    }

    fn published(&self, currency: &str) -> Option<(&'static Price, &'static str)> {
        let found = list_price(&self.provider, &self.model, currency, |_| false)?;
        Some((&found.price, found.source.as_str()))
    }

    /// Returns the price to begin with, and where it is from.
    fn price(&self, currency: &str) -> (Price, &'static str) {
        let (provider, model) = (self.provider.clone(), self.model.clone());
        match self.published(currency) {
            Some((price, source)) => (Price { provider, model, ..price.clone() }, source),
            None => {
                let (input, output) = EXAMPLE;
                let (cache_read, cache_creation, batch_percent) = (None, None, None);
                let price = Price {
                    provider,
                    model,
                    input,
                    output,
                    cache_read,
                    cache_creation,
                    batch_percent,
                };
                (price, "an example: replace the numbers")
            }
        }
    }
}

/// Formats the section `[prices]` with the prices that are set, and an entry for each model without one.
pub fn template(currency: &str, set: &[Price], unpriced: &[UnpricedModel]) -> String {
    let mut text = format!(
        "[prices]\ncurrency = {}\n# Millionths of the currency per million tokens: 3000000 is 3.00.\nmodels = [\n",
        quoted(currency)
    );
    for price in set {
        text.push_str(&format!("  {},\n", entry(price)));
    }
    for model in unpriced {
        let (price, origin) = model.price(currency);
        text.push_str(&format!("  {}, # {origin}\n", entry(&price)));
    }
    text.push_str("]\n");
    text
}

fn entry(price: &Price) -> String {
    let Price { provider, model, input, output, cache_read, cache_creation, batch_percent } = price;
    let mut text = format!(
        "{{ provider = {}, model = {}, input = {input}, output = {output}",
        quoted(provider),
        quoted(model)
    );
    let more = [
        ("cache_read", *cache_read),
        ("cache_creation", *cache_creation),
        ("batch_percent", batch_percent.map(i64::from)),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            text.push_str(&format!(", {name} = {value}"));
        }
    }
    text.push_str(" }");
    text
}

/// Quotes a text. A string of JSON is one of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::prices::Config;

    #[derive(serde::Deserialize)]
    struct File {
        prices: Config,
    }

    fn model(provider: &str, model: &str) -> UnpricedModel {
        UnpricedModel { provider: provider.to_owned(), model: model.to_owned() }
    }

    #[test]
    fn the_text_is_a_complete_section_with_the_names_of_the_models() {
        let set = Price {
            provider: "west".to_owned(),
            model: "m \"1\"".to_owned(),
            input: 1,
            output: 2,
            cache_read: Some(3),
            cache_creation: None,
            batch_percent: Some(40),
        };
        let unpriced = [model("west", "gpt-x"), model("claude", "claude-opus-5-5")];
        let text = template("USD", std::slice::from_ref(&set), &unpriced);
        let File { prices } = toml::from_str(&text).unwrap();
        assert_eq!(prices.currency, "USD");
        assert_eq!(prices.models[0], set);
        assert_eq!((prices.models[1].model.as_str(), prices.models[1].input), ("gpt-x", 3_000_000));
        assert_eq!(prices.models[2].input, 4_000_000, "it is published");
        assert!(text.contains("an example: replace the numbers"), "{text}");
    }

    #[test]
    fn models_that_are_published_as_free_are_told_apart() {
        assert!(model("sim", "sim-1").is_free("EUR"));
        assert!(!model("claude", "claude-opus-5-5").is_free("USD"));
        assert!(!model("west", "gpt-x").is_free("USD"));
    }
}
