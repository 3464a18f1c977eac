//! The price of an estimate: configured, published, or learnt from charged costs.

use super::Services;
use crate::{
    domain::{
        estimates::{EarlierTurn, EstimatePrice, PriceOrigin, Pricing},
        prices::{Price, list_price},
    },
    providers::Provider,
};

/// Finds the price of a model, and how much is charged in relation to it. `None`: nothing is known about it.
pub(super) fn find(
    services: &Services,
    provider: &dyn Provider,
    (provider_name, model): (&str, &str),
    earlier: &[EarlierTurn],
) -> Option<(Pricing, EstimatePrice)> {
    if let Some(price) = services.price(provider_name, model) {
        return Some(basis(PriceOrigin::Configured, price.clone(), 1.0));
    }
    let is_same =
        |other: &str| provider.is_same_model(model, other) || provider.is_same_model(other, model);
    let listed = list_price(provider_name, model, &services.prices.currency, is_same);
    // Its own table of prices may differ from the published one.
    let factor = |price: &Price| match provider.reports_costs() {
        true => charged_factor(price, provider.prompt_cache().is_some(), earlier),
        false => None,
    };
    let Some(listed) = listed else {
        let unit = unit_price(provider_name, model);
        let factor = factor(&unit)?;
        return Some(basis(PriceOrigin::Charged, unit, factor));
    };
    let factor = factor(&listed.price).unwrap_or(1.0);
    let (pricing, price) = basis(PriceOrigin::Published, listed.price.clone(), factor);
    let (source, checked) = (Some(listed.source.clone()), Some(listed.checked));
    Some((pricing, EstimatePrice { source, checked, ..price }))
}

fn basis(origin: PriceOrigin, price: Price, factor: f64) -> (Pricing, EstimatePrice) {
    let shown = EstimatePrice {
        origin,
        model: price.model.clone(),
        input: price.input,
        output: price.output,
        cache_read: price.cache_read.unwrap_or(price.input),
        cache_creation: price.cache_creation.unwrap_or(price.input),
        source: None,
        checked: None,
        factor,
    };
    (Pricing { price, factor }, shown)
}

/// Returns the median of charged costs in relation to this price.
fn charged_factor(price: &Price, caches: bool, earlier: &[EarlierTurn]) -> Option<f64> {
    let pricing = Pricing { price: price.clone(), factor: 1.0 };
    let factor = |turn: &EarlierTurn| {
        let at_price =
            pricing.cost(caches, turn.input_tokens, turn.cached_tokens, turn.output_tokens);
        (turn.cost_micros > 0 && at_price > 0).then(|| turn.cost_micros as f64 / at_price as f64)
    };
    let mut factors: Vec<f64> = earlier.iter().filter_map(factor).collect();
    factors.sort_by(f64::total_cmp);
    factors.get(factors.len() / 2).copied()
}

/// The ratio of the prices of all Claude models, by kind of token.
fn unit_price(provider: &str, model: &str) -> Price {
    Price {
        provider: provider.to_owned(),
        model: model.to_owned(),
        input: 1_000_000,
        output: 5_000_000,
        cache_read: Some(100_000),
        cache_creation: Some(1_250_000),
        batch_percent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charged_costs_are_compared_with_the_price() {
        let turn = |cost_micros| EarlierTurn {
            calls: 1,
            first_tokens: 1000,
            input_tokens: 1000,
            cached_tokens: 0,
            output_tokens: 100,
            cost_micros,
        };
        let price = unit_price("claude", "m");
        // 1,000 written at 1.25 and 100 at 5 are 1,750.
        let factor = |turns: &[EarlierTurn]| charged_factor(&price, true, turns);
        assert_eq!(factor(&[turn(3500), turn(1750), turn(3500)]), Some(2.0));
        assert_eq!(factor(&[turn(0)]), None, "a turn without a reported cost tells nothing");
    }
}
