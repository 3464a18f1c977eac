//! The section `[facts]`.

use chrono::TimeDelta;
use serde::Deserialize;

use crate::settings::Checks;

/// A century: far from where adding to a point in time overflows.
const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Lets models read facts from sessions, for agents whose files allow it.
    pub extract: bool,
    /// Maximum number of current facts about one user.
    pub user_max: i64,
    /// Maximum number of facts in one answer of a model.
    pub answer_max: usize,
    /// Maximum bytes of all facts together that an agent is told with a task.
    pub told_max_bytes: i32,
    /// Days for which a fact holds that a model has read. 0: until it is contradicted.
    pub extracted_days: u32,
}

impl Config {
    /// Returns the time for which a fact holds that a model has read. `None`: until it is contradicted.
    pub fn extracted_for(&self) -> Option<TimeDelta> {
        (self.extracted_days > 0).then(|| TimeDelta::days(self.extracted_days.into()))
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.user_max < 1 {
            let message = format!("is {}, but must be at least 1", self.user_max);
            checks.fail("facts.user_max", message, "5000");
        }
        checks.at_least("facts.answer_max", self.answer_max as u64, 1);
        if self.told_max_bytes < 1 {
            let message = format!("is {}, but must be at least 1", self.told_max_bytes);
            checks.fail("facts.told_max_bytes", message, "4096");
        }
        if self.extracted_days > MAX_DAYS {
            let message = format!("is {}", self.extracted_days);
            checks.fail("facts.extracted_days", message, format!("0 to {MAX_DAYS}"));
        }
    }
}
