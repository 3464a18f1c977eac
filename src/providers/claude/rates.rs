//! Prices of models, learnt from turns with a reported cost and used for turns without one.
//!
//! A turn that was cut off has tokens and no cost. The prices of all Claude models stand in the same ratio to each other, by kind of token.
//! So one number for each model is enough, and any turn with a cost tells it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::providers::{Meter, ModelSpend, Usage};

/// Price of one input token by model, in millionths of a dollar.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<BTreeMap<String, f64>>);

/// Price of one token in relation to an input token.
const OUTPUT: f64 = 5.0;
const CACHE_READ: f64 = 0.1;
const CACHE_CREATION: f64 = 1.25;

impl Rates {
    pub(super) fn learn(&self, spent: &[ModelSpend]) {
        for spent in spent {
            if let (Some(micros), units @ 1.0..) = (spent.cost_micros, units(&spent.usage)) {
                self.all().insert(spent.model.clone(), micros as f64 / units);
            }
        }
    }

    /// Fills in missing costs where a price is known: from here, or from the cost of the conversation so far.
    pub(super) fn fill_in(&self, spent: &mut [ModelSpend], so_far: &Meter) {
        for spent in spent.iter_mut().filter(|spent| spent.cost_micros.is_none()) {
            let rate = self.of(&spent.model).or_else(|| rate_of(so_far, &spent.model));
            spent.cost_micros = rate.map(|rate| (rate * units(&spent.usage)).ceil() as u64);
        }
    }

    /// Returns the maximum cost of a call of these sizes.
    pub(super) fn ceiling_micros(
        &self,
        model: &str,
        prompt_tokens: u64,
        answer_tokens: u64,
    ) -> Option<u64> {
        let units = prompt_tokens as f64 * CACHE_CREATION + answer_tokens as f64 * OUTPUT;
        self.of(model).map(|rate| (rate * units).ceil() as u64)
    }

    fn of(&self, model: &str) -> Option<f64> {
        let all = self.all();
        let same = |(told, _): &(&String, &f64)| is_same_model(model, told);
        all.get(model).or_else(|| all.iter().find(same).map(|(_, rate)| rate)).copied()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the provider answered with the model that was asked for. `sonnet` and `claude-sonnet-5[1m]` are `claude-sonnet-5`, and
/// so is a release of it with its date.
pub fn is_same_model(asked: &str, told: &str) -> bool {
    let [asked, told] = [asked, told].map(|name| name.split('[').next().unwrap_or(name));
    let is_date = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let base = asked.strip_suffix("-latest").unwrap_or(asked);
    let rest = told.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    let is_alias = !asked.is_empty() && asked != "claude" && !asked.contains('-');
    asked == told
        || rest.is_some_and(is_date)
        || (is_alias && told.starts_with("claude-") && told.split('-').any(|part| part == asked))
}

fn rate_of(so_far: &Meter, model: &str) -> Option<f64> {
    let reading = so_far.0.get(model)?;
    let usage = Usage {
        input: Some(reading.input),
        output: Some(reading.output),
        cache_read: Some(reading.cache_read),
        cache_creation: Some(reading.cache_creation),
    };
    let units = units(&usage);
    reading.cost_micros.filter(|_| units >= 1.0).map(|micros| micros as f64 / units)
}

fn units(usage: &Usage) -> f64 {
    let n = |count: Option<u64>| count.unwrap_or(0) as f64;
    n(usage.input)
        + n(usage.output) * OUTPUT
        + n(usage.cache_read) * CACHE_READ
        + n(usage.cache_creation) * CACHE_CREATION
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::MeterReading;

    fn call_cost(output: u64, cost_micros: Option<u64>) -> ModelSpend {
        let usage = Usage {
            input: Some(100),
            output: Some(output),
            cache_read: Some(1000),
            cache_creation: Some(40),
        };
        ModelSpend { model: "claude-sonnet-5".to_owned(), usage, cost_micros, window_tokens: None }
    }

    #[test]
    fn a_turn_without_a_bill_costs_as_much_as_the_last_billed_one() {
        let rates = Rates::default();
        let mut cut_off = [call_cost(30, None)];
        rates.fill_in(&mut cut_off, &Meter::default());
        assert_eq!(cut_off[0].cost_micros, None, "no turn has been billed yet");
        assert_eq!(rates.ceiling_micros("sonnet", 1000, 10), None);
        // 3 dollars a million: 100 + 10 · 5 + 1000 · 0.1 + 40 · 1.25 = 300.
        rates.learn(&[call_cost(10, Some(900)), call_cost(10, None)]);
        rates.fill_in(&mut cut_off, &Meter::default());
        assert_eq!(cut_off[0].cost_micros, Some(1200));
        assert_eq!(rates.ceiling_micros("sonnet", 1000, 10), Some(3900));
    }

    #[test]
    fn the_cost_of_the_conversation_so_far_gives_a_rate_too() {
        let reading =
            MeterReading { input: 100, cost_micros: Some(500), ..MeterReading::default() };
        let so_far = Meter(BTreeMap::from([("claude-sonnet-5".to_owned(), reading)]));
        let mut cut_off = [call_cost(10, None)];
        Rates::default().fill_in(&mut cut_off, &so_far);
        assert_eq!(cut_off[0].cost_micros, Some(1500));
    }

    #[test]
    fn aliases_dates_and_windows_name_the_same_model() {
        for asked in ["claude-sonnet-5", "claude-sonnet-5[1m]", "sonnet", "sonnet[1m]"] {
            assert!(is_same_model(asked, "claude-sonnet-5"), "{asked}");
            assert!(is_same_model(asked, "claude-sonnet-5-20261101"), "{asked}");
        }
        assert!(is_same_model("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219"));
        for asked in ["opus", "claude-opus-5", "claude", "", "claude-sonnet", "son"] {
            assert!(!is_same_model(asked, "claude-sonnet-5"), "{asked}");
        }
        assert!(!is_same_model("claude-opus-4", "claude-opus-4-8"));
    }
}
