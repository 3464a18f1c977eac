//! Estimates tokens from weights: one learned factor per model, anchored at the last real count.
//!
//! The provider's own count is exact for its call. The next call is estimated as that count plus the difference of the
//! two weights times the factor. So an error of the factor affects only the added part. Counts of several turns are
//! never added up: with a growing history that would count its beginning once per turn.

use serde::{Deserialize, Serialize};

use crate::weight::Weight;

/// The factor of an unseen model. Too high rather than too low: a context judged too big is compacted early, one judged
/// too small is rejected or silently cut.
const COLD_SCALE: f64 = 1.5;
const SCALE_MIN: f64 = 0.5;
const SCALE_MAX: f64 = 8.0;
/// The share of the earlier sums that is kept when a new call is added.
const DECAY: f64 = 0.65;
/// Overlap of two calls below which the anchor tells too little about the new one.
const ANCHOR_OVERLAP_MIN: f64 = 0.5;
/// Share of a calibrated projection below which a count means that the prompt was cut off.
const TRUNCATION_SHARE: f64 = 0.6;
/// A projection is evidence against a provider only after this many of its counts. It also counts only for calls that
/// are not much heavier than any counted before.
const SAMPLES_TO_TRUST: u32 = 2;
const EXPERIENCE_FACTOR: u64 = 2;

/// The learned factor of a model (provider, model digest, template), shared by its sessions.
///
/// It is a quotient of two fading sums and not a mean of quotients, so heavy calls count for more. The fixed part of a
/// chat template dominates the first short calls, but does not distort the factor for long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    weights_tokens: f64,
    real_tokens: f64,
    heaviest: Weight,
    samples: u32,
}

/// The weight of a call and the provider's count for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub weight: Weight,
    pub real_tokens: u64,
}

impl Calibration {
    pub fn cold() -> Self {
        Self { weights_tokens: 1.0, real_tokens: COLD_SCALE, heaviest: Weight::ZERO, samples: 0 }
    }

    /// Returns the tokens of a text that has not been sent yet, rounded up.
    pub fn tokens(&self, weight: Weight) -> u64 {
        (weight.millitokens() as f64 / 1000.0 * self.scale()).ceil() as u64
    }

    /// Returns the largest weight that is estimated at no more than `tokens`.
    pub fn weight_within(&self, tokens: u64) -> Weight {
        Weight::from_millitokens((tokens as f64 * 1000.0 / self.scale()).floor() as u64)
    }

    /// Returns the tokens that a call of this weight will occupy.
    pub fn project(&self, anchor: Option<&Checkpoint>, weight: Weight) -> u64 {
        match anchor {
            Some(anchor) if overlap(anchor.weight, weight) >= ANCHOR_OVERLAP_MIN => {
                let grown = self.tokens(weight.saturating_sub(anchor.weight));
                let shrunk = self.tokens(anchor.weight.saturating_sub(weight));
                (anchor.real_tokens + grown).saturating_sub(shrunk)
            }
            _ => self.tokens(weight),
        }
    }

    /// Learns from a call whose real input count is known. Ignores a count that looks like a cut prompt: it would make
    /// every later estimate too small.
    pub fn observe(&mut self, call: Checkpoint) {
        if call.weight == Weight::ZERO || call.real_tokens == 0 || self.looks_truncated(call) {
            return;
        }
        let memory = if self.samples == 0 { 0.0 } else { DECAY };
        self.weights_tokens =
            self.weights_tokens * memory + call.weight.millitokens() as f64 / 1000.0;
        self.real_tokens = self.real_tokens * memory + call.real_tokens as f64;
        self.heaviest = self.heaviest.max(call.weight);
        self.samples = self.samples.saturating_add(1);
    }

    /// Returns true if the count is so low that the provider must have dropped a part of the call.
    pub fn looks_truncated(&self, call: Checkpoint) -> bool {
        let familiar = call.weight.millitokens() <= self.heaviest.millitokens() * EXPERIENCE_FACTOR;
        self.samples >= SAMPLES_TO_TRUST
            && familiar
            && (call.real_tokens as f64) < self.tokens(call.weight) as f64 * TRUNCATION_SHARE
    }

    pub fn is_cold(&self) -> bool {
        self.samples == 0
    }

    fn scale(&self) -> f64 {
        (self.real_tokens / self.weights_tokens).clamp(SCALE_MIN, SCALE_MAX)
    }
}

impl Default for Calibration {
    fn default() -> Self {
        Self::cold()
    }
}

fn overlap(a: Weight, b: Weight) -> f64 {
    let (small, large) = (a.min(b).millitokens(), a.max(b).millitokens());
    if large == 0 { 0.0 } else { small as f64 / large as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tokens_of_weight: u64, real_tokens: u64) -> Checkpoint {
        Checkpoint { weight: Weight::from_millitokens(tokens_of_weight * 1000), real_tokens }
    }

    #[test]
    fn a_cold_model_is_estimated_high() {
        assert_eq!(Calibration::cold().tokens(Weight::from_millitokens(100_000)), 150);
    }

    #[test]
    fn the_anchor_carries_the_estimate_and_only_the_difference_is_scaled() {
        let mut calibration = Calibration::cold();
        calibration.observe(call(1000, 2000));
        let anchor = call(1000, 2100);
        let next = Weight::from_millitokens(1_100_000);
        assert_eq!(calibration.project(Some(&anchor), next), 2300);
        let far = Weight::from_millitokens(100_000);
        assert_eq!(calibration.project(Some(&anchor), far), 200);
    }

    #[test]
    fn a_truncated_count_does_not_change_the_factor() {
        let mut calibration = Calibration::cold();
        calibration.observe(call(1000, 1000));
        calibration.observe(call(6000, 6000));
        let before = calibration;
        calibration.observe(call(9000, 4096));
        assert_eq!(calibration, before);
        assert!(calibration.looks_truncated(call(9000, 4096)));
    }

    #[test]
    fn a_hidden_preamble_neither_distorts_the_factor_nor_looks_like_truncation() {
        let mut calibration = Calibration::cold();
        for weight in [100, 160, 300, 700, 1_500, 5_000, 9_000] {
            let counted = call(weight, weight + 150);
            assert!(!calibration.looks_truncated(counted), "{weight}");
            calibration.observe(counted);
        }
        let tokens = calibration.tokens(Weight::from_millitokens(10_000_000));
        assert!((10_000..10_500).contains(&tokens), "{tokens}");
    }

    #[test]
    fn absurd_counts_are_bounded() {
        let mut calibration = Calibration::cold();
        calibration.observe(call(10, 1_000_000));
        assert_eq!(calibration.tokens(Weight::from_millitokens(1_000_000)), 8_000);
    }
}
