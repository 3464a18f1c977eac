//! Cost of a turn: the difference of two readings of the provider's running totals.
//!
//! `modelUsage` of a result counts the process up to now. In some versions a resumed process begins at 0, in others it continues from the
//! session's totals. The stream does not say which. So both differences are computed, and the one nearer to the turn's own counts is taken.
//! The turn's counts cannot be the bill themselves: they are 0 after a fallback and lack the cost of summaries.

use std::collections::BTreeMap;

use crate::providers::{
    Call, Meter, MeterReading, ModelSpend, Usage,
    stream_json::{ModelUsage, TurnResult},
};

/// Maximum plausible cost of one turn.
const MAX_USD: f64 = 1e6;

/// Returns the usage since `before`, and the reading to start from the next time. `n_seen` is the number of tokens that the turn has
/// counted by other means.
pub(super) fn spent(result: &TurnResult, before: &Meter, n_seen: u64) -> (Vec<ModelSpend>, Meter) {
    let now =
        Meter(result.model_usage.iter().map(|(name, usage)| (name.clone(), read(usage))).collect());
    let from_zero = since(&now, &Meter::default()).unwrap_or_default();
    let readings = match since(&now, before) {
        Some(since) if is_nearer(n_tokens(&since), n_tokens(&from_zero), n_seen) => since,
        _ => from_zero,
    };
    let spent = readings.into_iter().filter(|(_, reading)| has_usage(reading));
    let windows = &result.model_usage;
    let spent = spent.map(|(model, reading)| ModelSpend {
        window_tokens: windows
            .get(&model)
            .and_then(|usage| u32::try_from(usage.context_window?).ok()),
        usage: usage(&reading),
        cost_micros: reading.cost_micros,
        model,
    });
    (spent.collect(), now)
}

/// Adds up calls if no total was reported: tokens without a price.
pub(super) fn of_calls(calls: &[Call]) -> Vec<ModelSpend> {
    let mut models: BTreeMap<&str, Vec<ModelSpend>> = BTreeMap::new();
    for call in calls {
        let spent = ModelSpend {
            model: call.model.clone(),
            usage: call.usage,
            cost_micros: None,
            window_tokens: None,
        };
        models.entry(&call.model).or_default().push(spent);
    }
    let one = |(model, spent): (&str, Vec<ModelSpend>)| ModelSpend {
        model: model.to_owned(),
        usage: total(&spent),
        cost_micros: None,
        window_tokens: None,
    };
    models.into_iter().map(one).collect()
}

/// Adds up the usage of all models.
pub(super) fn total(spent: &[ModelSpend]) -> Usage {
    let sum = |part: fn(&Usage) -> Option<u64>| {
        spent.iter().filter_map(|spent| part(&spent.usage)).reduce(u64::saturating_add)
    };
    Usage {
        input: sum(|usage| usage.input),
        output: sum(|usage| usage.output),
        cache_read: sum(|usage| usage.cache_read),
        cache_creation: sum(|usage| usage.cache_creation),
    }
}

pub(super) fn n_tokens_of(usage: &Usage) -> u64 {
    [usage.input, usage.output, usage.cache_read, usage.cache_creation].iter().flatten().sum()
}

/// Returns the differences of two readings. `None`: a total shrank, so it was begun anew.
fn since(now: &Meter, before: &Meter) -> Option<BTreeMap<String, MeterReading>> {
    let has_shrunk = |name: &&String| !now.0.contains_key(*name);
    if before.0.keys().any(|name| has_shrunk(&name)) {
        return None;
    }
    let difference = |(name, now): (&String, &MeterReading)| {
        let before = before.0.get(name).copied().unwrap_or_default();
        Some((name.clone(), minus(now, &before)?))
    };
    now.0.iter().map(difference).collect()
}

fn minus(now: &MeterReading, before: &MeterReading) -> Option<MeterReading> {
    Some(MeterReading {
        input: now.input.checked_sub(before.input)?,
        output: now.output.checked_sub(before.output)?,
        cache_read: now.cache_read.checked_sub(before.cache_read)?,
        cache_creation: now.cache_creation.checked_sub(before.cache_creation)?,
        cost_micros: match (now.cost_micros, before.cost_micros) {
            (Some(now), Some(before)) => Some(now.checked_sub(before)?),
            (Some(now), None) if *before == MeterReading::default() => Some(now),
            _ => None,
        },
    })
}

/// Returns true if the totals continued. On a tie nothing was carried over, or it does not matter.
fn is_nearer(went_on: u64, from_zero: u64, n_seen: u64) -> bool {
    went_on.abs_diff(n_seen) < from_zero.abs_diff(n_seen)
}

fn has_usage(reading: &MeterReading) -> bool {
    let nothing = MeterReading { cost_micros: reading.cost_micros, ..MeterReading::default() };
    *reading != nothing || reading.cost_micros.is_some_and(|cost| cost > 0)
}

fn n_tokens(readings: &BTreeMap<String, MeterReading>) -> u64 {
    readings.values().map(|r| r.input + r.output + r.cache_read + r.cache_creation).sum()
}

fn read(usage: &ModelUsage) -> MeterReading {
    MeterReading {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: usage.cache_read_input_tokens.unwrap_or(0),
        cache_creation: usage.cache_creation_input_tokens.unwrap_or(0),
        cost_micros: usage.cost_usd.and_then(micros),
    }
}

fn micros(usd: f64) -> Option<u64> {
    (0.0..=MAX_USD).contains(&usd).then(|| (usd * 1e6).round() as u64)
}

fn usage(reading: &MeterReading) -> Usage {
    Usage {
        input: Some(reading.input),
        output: Some(reading.output),
        cache_read: Some(reading.cache_read),
        cache_creation: Some(reading.cache_creation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(models: &[(&str, u64, Option<f64>)]) -> TurnResult {
        let usage = |(name, tokens, cost_usd): &(&str, u64, Option<f64>)| {
            let usage = ModelUsage {
                input_tokens: Some(*tokens),
                cost_usd: *cost_usd,
                ..ModelUsage::default()
            };
            ((*name).to_owned(), usage)
        };
        TurnResult { model_usage: models.iter().map(usage).collect(), ..TurnResult::default() }
    }

    fn inputs(spent: &[ModelSpend]) -> Vec<(&str, Option<u64>, Option<u64>)> {
        spent.iter().map(|s| (s.model.as_str(), s.usage.input, s.cost_micros)).collect()
    }

    #[test]
    fn a_process_that_starts_at_zero_and_one_that_continues_cost_the_same() {
        let (first, meter) = spent(&result(&[("m", 100, Some(0.01))]), &Meter::default(), 100);
        assert_eq!(inputs(&first), [("m", Some(100), Some(10_000))]);
        for (totals, cost) in [(130, 0.013), (230, 0.023)] {
            let (second, _) = spent(&result(&[("m", totals, Some(cost))]), &meter, 130);
            assert_eq!(inputs(&second), [("m", Some(130), Some(13_000))], "{totals}");
        }
    }

    #[test]
    fn a_total_that_shrank_or_lost_a_model_was_reset() {
        let meter =
            spent(&result(&[("m", 100, Some(1.0)), ("n", 5, None)]), &Meter::default(), 0).1;
        let (fewer, _) = spent(&result(&[("m", 120, Some(1.5))]), &meter, 20);
        assert_eq!(inputs(&fewer), [("m", Some(120), Some(1_500_000))]);
    }

    #[test]
    fn unused_models_cost_nothing() {
        let meter =
            spent(&result(&[("m", 100, Some(1.0)), ("n", 5, Some(0.1))]), &Meter::default(), 0).1;
        let now = result(&[("m", 100, Some(1.0)), ("n", 9, Some(0.3))]);
        assert_eq!(inputs(&spent(&now, &meter, 4).0), [("n", Some(4), Some(200_000))]);
    }

    #[test]
    fn an_impossible_price_is_unknown_and_its_tokens_still_count() {
        for cost in [None, Some(-1.0), Some(1e30)] {
            let (spent, _) = spent(&result(&[("m", 7, cost)]), &Meter::default(), 7);
            assert_eq!(inputs(&spent), [("m", Some(7), None)]);
        }
    }

    #[test]
    fn a_fallback_that_hides_the_turns_own_counts_is_still_charged() {
        let (spent, _) = spent(&result(&[("m", 50, Some(0.5))]), &Meter::default(), 0);
        assert_eq!(inputs(&spent), [("m", Some(50), Some(500_000))]);
        assert_eq!(n_tokens_of(&total(&spent)), 50);
    }
}
