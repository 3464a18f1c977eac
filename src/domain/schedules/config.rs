//! The section `[scheduler]`.

use serde::Deserialize;

use super::{Invalid, Timetable};
use crate::settings::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether this process looks what is due.
    pub enabled: bool,
    /// When the nightly cleanup is.
    pub purge: String,
    /// Of the built-in schedules.
    pub time_zone: String,
    /// Of the built-in schedules.
    pub catch_up_secs: u32,
    /// Time between two looks.
    pub look_secs: u32,
}

/// More than this, and a look every minute would be missed.
const MAX_LOOK_SECS: u32 = 30;

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        match Timetable::parse(&self.purge, &self.time_zone) {
            Ok(_) => {}
            Err(error @ Invalid::Cron { .. }) => {
                checks.fail("scheduler.purge", error.to_string(), "\"0 0 2 * * *\"");
            }
            Err(error @ Invalid::Zone(_)) => {
                checks.fail("scheduler.time_zone", error.to_string(), "\"UTC\"");
            }
        }
        checks.secs("scheduler.catch_up_secs", self.catch_up_secs.into(), 60);
        if !(1..=MAX_LOOK_SECS).contains(&self.look_secs) {
            let message = format!("is {}, but has to be from 1 to {MAX_LOOK_SECS}", self.look_secs);
            checks.fail("scheduler.look_secs", message, "5");
        }
    }
}
