//! The section `[scheduler]`.

use std::time::Duration;

use serde::Deserialize;

use super::{Invalid, Timetable};
use crate::settings::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// True to run the scheduler in this process.
    pub enabled: bool,
    /// Cron expression of the nightly cleanup, with seconds.
    pub cleanup: String,
    /// Time zone of the built-in schedules.
    pub time_zone: String,
    /// Age in seconds up to which missed runs of the built-in schedules are caught up.
    pub catch_up_secs: u32,
    /// Maximum seconds between two checks for due schedules. The process also checks at each moment of a schedule and after each change
    /// of one.
    pub look_secs: u32,
}

/// Below five minutes, after which the alert about a scheduler that does not check fires.
const MAX_LOOK_SECS: u32 = 240;

impl Config {
    pub fn look_interval(&self) -> Duration {
        Duration::from_secs(self.look_secs.into())
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        for invalid in Timetable::problems(&self.cleanup, &self.time_zone) {
            let (key, fix) = match invalid {
                Invalid::Cron { .. } => ("scheduler.cleanup", "\"0 0 2 * * *\""),
                Invalid::Zone(_) => ("scheduler.time_zone", "\"UTC\""),
            };
            checks.fail(key, invalid.to_string(), fix);
        }
        checks.secs("scheduler.catch_up_secs", self.catch_up_secs.into(), 60);
        if !(1..=MAX_LOOK_SECS).contains(&self.look_secs) {
            let message = format!("is {}, but must be from 1 to {MAX_LOOK_SECS}", self.look_secs);
            checks.fail("scheduler.look_secs", message, "180");
        }
    }
}
