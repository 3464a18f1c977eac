//! The section `[facts]`.

use chrono::TimeDelta;
use serde::Deserialize;

use crate::settings::Checks;

/// A century: far from where adding to a point in time overflows.
const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether models are asked to read facts from sessions, of agents whose files want it too.
    pub extract: bool,
    /// The most that hold of one user.
    pub user_max: i64,
    /// The most that one answer of a model may have.
    pub answer_max: usize,
    /// Of all facts together that an agent is told.
    pub told_max_bytes: i32,
    /// How long a fact holds that a model has read; 0: until something else is said.
    pub extracted_days: u32,
}

impl Config {
    /// How long a fact holds that a model has read.
    pub fn extracted_for(&self) -> Option<TimeDelta> {
        (self.extracted_days > 0).then(|| TimeDelta::days(self.extracted_days.into()))
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.user_max < 1 {
            let message = format!("is {}", self.user_max);
            checks.fail("facts.user_max", message, "5000");
        }
        checks.at_least("facts.answer_max", self.answer_max as u64, 1);
        if self.told_max_bytes < 1 {
            let message = format!("is {}", self.told_max_bytes);
            checks.fail("facts.told_max_bytes", message, "4096");
        }
        if self.extracted_days > MAX_DAYS {
            let message = format!("is {}", self.extracted_days);
            checks.fail("facts.extracted_days", message, format!("0 to {MAX_DAYS}"));
        }
    }
}
