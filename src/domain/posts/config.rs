//! Settings of boards.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::settings::Checks;

/// A century: far from where subtracting from a point in time overflows.
pub(super) const MAX_DAYS: u32 = 36_500;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Maximum age of a post that is not archived. 0: no limit.
    pub keep_days: u32,
    /// Maximum number of posts of a campaign that are not archived. 0: no limit.
    pub keep_posts: u32,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.keep_days > MAX_DAYS {
            let message = format!("is {}, but must be at most {MAX_DAYS}", self.keep_days);
            checks.fail("board.keep_days", message, "180, or 0 for no limit");
        }
    }

    /// Returns the time before which posts are old. `None`: no post is.
    pub fn old_before(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        (self.keep_days > 0).then(|| now - TimeDelta::days(self.keep_days.into()))
    }
}
