//! The permit of a turn or another call.

use std::{sync::Arc, time::Duration};

use super::{CallSize, ModelKey, RateLimits, State, model_key};
use crate::{
    domain::rate_limits::{CallScope, Measure, RateLimit},
    providers::{ToldLimits, Usage},
};

/// The permit of calls. It holds their concurrent calls until it is dropped, and returns the charge of calls that were not made.
#[derive(Debug, Default)]
pub struct Permit(Option<Box<Admission>>);

#[derive(Debug)]
struct Admission {
    limits: Arc<RateLimits>,
    model: ModelKey,
    size: CallSize,
    /// The limits of the call, and what it was charged in each of them.
    charges: Vec<(RateLimit, f64)>,
    is_used: bool,
}

/// The calls that were made under a permit.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::jobs) struct CallUse {
    pub(in crate::jobs) n_calls: u64,
    pub(in crate::jobs) usage: Usage,
    /// True if the limits of the provider count tokens that were read from its cache.
    pub(in crate::jobs) counts_cached: bool,
}

/// Weight of the last call in the learnt ratios.
const NEWEST: f64 = 0.2;

impl Permit {
    pub(super) fn new(
        limits: &Arc<RateLimits>,
        call: CallScope<'_>,
        size: CallSize,
        charges: Vec<(RateLimit, f64)>,
    ) -> Self {
        let limits = Arc::clone(limits);
        let admission = Admission { limits, model: model_key(call), size, charges, is_used: false };
        Self(Some(Box::new(admission)))
    }

    /// Charges the calls that were made so far, in place of what was expected. Calls that the provider has not counted stay charged as
    /// expected.
    pub(in crate::jobs) fn charge(&mut self, used: CallUse) {
        let Some(admission) = &mut self.0 else { return };
        admission.is_used = true;
        let (input, output) = (used.input_tokens(), used.usage.output);
        let mut state = admission.limits.state();
        for (limit, charged) in &mut admission.charges {
            let actual = match limit.measure {
                Measure::Requests => Some(used.n_calls),
                Measure::InputTokens => input,
                Measure::OutputTokens => output,
                Measure::ConcurrentCalls => None,
            };
            let actual = actual.map_or(*charged, |n| n as f64);
            state.share(limit).charge(actual - *charged);
            *charged = actual;
        }
        if used.n_calls == 1 {
            state.learn_size(&admission.model, admission.size, (input, output));
        }
    }

    /// Learns the limits that the provider tells.
    pub(in crate::jobs) fn learn(&self, told: &ToldLimits) {
        let Some(admission) = &self.0 else { return };
        let measures = [Measure::Requests, Measure::InputTokens, Measure::OutputTokens];
        let told = [told.requests, told.input_tokens, told.output_tokens];
        let told: Vec<_> = measures
            .into_iter()
            .zip(told)
            .filter_map(|(measure, told)| Some((measure, told?)))
            .collect();
        if told.is_empty() {
            return;
        }
        let (provider, model, credential) = &admission.model;
        let call = CallScope {
            provider,
            model,
            credential: credential.as_deref(),
            campaign_id: uuid::Uuid::nil(),
        };
        let mut state = admission.limits.state();
        for (measure, told) in &told {
            let limit = RateLimit::told(call, (*measure, told.per_minute as f64));
            let share = state.share(&limit);
            share.set_amount(limit.amount);
            if let Some(remaining) = told.remaining {
                share.bound(remaining as f64);
            }
        }
        let known = state.models.entry(admission.model.clone()).or_default();
        known.told =
            told.iter().map(|(measure, told)| (*measure, told.per_minute as f64)).collect();
    }

    /// Stops the calls of all workers under the provider's limits for the time that it asks for.
    pub(in crate::jobs) fn pause(&self, after: Duration) {
        let Some(admission) = &self.0 else { return };
        let mut state = admission.limits.state();
        for (limit, _) in admission.charges.iter().filter(|(limit, _)| limit.is_of_provider) {
            state.share(limit).pause(after);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(admission) = &self.0 else { return };
        let mut state = admission.limits.state();
        let mut is_awaited = false;
        for (limit, charged) in &admission.charges {
            let share = state.share(limit);
            match limit.measure {
                Measure::ConcurrentCalls => is_awaited |= share.end_call(),
                _ if !admission.is_used => share.charge(-charged),
                _ => {}
            }
        }
        drop(state);
        if is_awaited {
            admission.limits.freed.notify_one();
        }
    }
}

impl CallUse {
    /// Returns the tokens of the prompts that limits count.
    fn input_tokens(&self) -> Option<u64> {
        let Usage { input, cache_read, cache_creation, .. } = self.usage;
        let cached = cache_read.filter(|_| self.counts_cached).unwrap_or(0);
        input.map(|input| input + cached + cache_creation.unwrap_or(0))
    }
}

impl State {
    /// Learns how much of the estimated size calls of a model really use.
    fn learn_size(
        &mut self,
        model: &ModelKey,
        size: CallSize,
        (input, output): (Option<u64>, Option<u64>),
    ) {
        let learn = |ratio: &mut Option<f64>, counted: Option<u64>, estimated: u64| {
            if let (Some(counted), true) = (counted, estimated > 0) {
                let newest = counted as f64 / estimated as f64;
                *ratio = Some(ratio.map_or(newest, |old| old + NEWEST * (newest - old)));
            }
        };
        let known = self.models.entry(model.clone()).or_default();
        learn(&mut known.input_ratio, input, size.input_tokens);
        learn(&mut known.output_ratio, output, size.output_tokens);
    }
}
