//! Published prices of models (`config/prices.toml`), for estimates. The ledger does not use them.

use std::sync::LazyLock;

use chrono::NaiveDate;
use serde::Deserialize;

use super::Price;

/// Price of a model as its provider publishes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListPrice {
    pub price: Price,
    /// Address of the page, or the reason of the price.
    pub source: String,
    /// Day on which the source was read.
    pub checked: NaiveDate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    currency: String,
    models: Vec<ListPrice>,
}

const TEXT: &str = include_str!("../../../config/prices.toml");
const ANY_MODEL: &str = "*";

static LIST: LazyLock<List> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// Finds the published price of a model, in this currency or free. `is_same` returns true for other names of the model.
pub fn list_price(
    provider: &str,
    model: &str,
    currency: &str,
    is_same: impl Fn(&str) -> bool,
) -> Option<&'static ListPrice> {
    let List { currency: own, models } = &*LIST;
    let known = |listed: &&ListPrice| {
        listed.price.provider == provider && (own == currency || listed.price.is_free())
    };
    let mut of_provider = models.iter().filter(known);
    let exact = of_provider.clone().find(|listed| listed.price.model == model);
    exact.or_else(|| of_provider.find(|it| it.price.model == ANY_MODEL || is_same(&it.price.model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_price_is_readable_complete_and_unique() {
        let list: List = toml::from_str(TEXT).unwrap();
        let names: Vec<_> =
            list.models.iter().map(|it| (&it.price.provider, &it.price.model)).collect();
        for (at, listed) in list.models.iter().enumerate() {
            let Price { input, output, cache_read, cache_creation, .. } = listed.price;
            assert!(!names[..at].contains(&names[at]), "{:?} is there twice", names[at]);
            assert!(!listed.source.is_empty());
            if !listed.price.is_free() {
                assert!(listed.source.starts_with("https://"), "{listed:?}");
                let (read, written) = (cache_read.unwrap(), cache_creation.unwrap());
                assert!(0 < read && read < input && input < written && written < output);
            }
        }
    }

    #[test]
    fn a_price_applies_in_its_currency_and_a_free_model_in_any() {
        let find = |provider: &str, model: &str, currency: &str| {
            let found = list_price(provider, model, currency, |other| other.contains("opus"));
            found.map(|it| it.price.model.as_str())
        };
        assert_eq!(find("claude", "claude-opus-5", "USD"), Some("claude-opus-5"));
        assert_eq!(find("claude", "opus", "USD"), Some("claude-opus-5-5"), "the newest one");
        assert_eq!(find("claude", "claude-opus-5", "EUR"), None, "nothing is converted");
        assert_eq!(find("ollama", "qwen3:8b", "EUR"), Some("*"));
        assert_eq!(find("nobody", "m", "USD"), None);
    }
}
