//! The section `[webhooks]`.

use std::time::Duration;

use chrono::TimeDelta;
use serde::Deserialize;

use crate::settings::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Allows webhooks to private addresses, and without TLS.
    pub allow_private: bool,
    /// Timeout of one attempt in seconds, from resolving the name to the end of the answer.
    pub timeout_secs: u32,
    /// Days of failures after which a webhook is disabled.
    pub disable_after_days: u32,
    /// Days that the deliveries of ended tasks are kept.
    pub keep_days: u32,
}

impl Config {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_secs.into())
    }

    pub fn disable_after(&self) -> TimeDelta {
        TimeDelta::days(self.disable_after_days.into())
    }

    pub fn keep(&self) -> TimeDelta {
        TimeDelta::days(self.keep_days.into())
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        if !(1..=60).contains(&self.timeout_secs) {
            let message = format!("is {}, but must be from 1 to 60", self.timeout_secs);
            checks.fail("webhooks.timeout_secs", message, "15");
        }
        checks.at_least("webhooks.disable_after_days", self.disable_after_days.into(), 1);
        // The last attempt comes three days after the first.
        checks.at_least("webhooks.keep_days", self.keep_days.into(), 4);
    }
}
