//! Settings of the audit log.

use chrono::TimeDelta;
use serde::Deserialize;

use crate::settings::Checks;

/// A century: far from where subtracting from a point in time overflows.
const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub keep_days: u32,
}

impl Config {
    pub fn keep(&self) -> TimeDelta {
        TimeDelta::days(self.keep_days.into())
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        if !(1..=MAX_DAYS).contains(&self.keep_days) {
            let message = format!("is {}, but must be from 1 to {MAX_DAYS}", self.keep_days);
            checks.fail("audit.keep_days", message, "365");
        }
    }
}
