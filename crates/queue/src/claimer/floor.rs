//! Not looking twice at what is surely gone.
//!
//! While somebody's long transaction keeps dead rows from being cleaned away, every claim walks over the index entries
//! of all jobs claimed before. So as long as claims come back full, the next one begins where the last one ended. A job that becomes ready below that floor (a late commit) is found by the next claim
//! without a floor, which is made at least once a second.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// How often to look at everything, at the least.
const FULL_LOOK_EVERY: Duration = Duration::from_secs(1);
/// A full look that is slow may take this part of the time and no more.
const FULL_LOOK_SHARE: u32 = 20;

/// A place in the order of claims: priority, since when ready, id.
pub(super) type Place = (i16, DateTime<Utc>, i64);

/// Before all jobs: no priority is negative, and nothing becomes ready before 1970.
const BOTTOM: Place = (-1, DateTime::UNIX_EPOCH, 0);

/// Where the next claim begins.
#[derive(Debug, Default)]
pub(super) struct Floor {
    at: Option<Place>,
    full_look_at: Option<Instant>,
    used: bool,
}

impl Floor {
    /// Jobs of the floor's priority that come before it are not looked at; more urgent ones always are.
    pub(super) fn begin(&mut self, now: Instant) -> Place {
        let due = self.full_look_at.is_none_or(|at| now >= at);
        self.used = !due && self.at.is_some();
        match self.at {
            Some(floor) if self.used => floor,
            _ => BOTTOM,
        }
    }

    /// The claim took so long; `last` is the place of the last job without a group that it found, and it was `full` or not.
    pub(super) fn end(&mut self, now: Instant, took: Duration, full: bool, last: Option<Place>) {
        if !self.used {
            self.full_look_at = Some(now + FULL_LOOK_EVERY.max(took * FULL_LOOK_SHARE));
        }
        self.at = if full { last } else { None };
    }

    /// Whether the last claim had a floor.
    pub(super) fn hid_something(&self) -> bool {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_with_full_claims_and_is_forgotten_every_second() {
        let mut floor = Floor::default();
        let job = (100, DateTime::UNIX_EPOCH + Duration::from_secs(10), 7);
        let start = Instant::now();

        assert_eq!(floor.begin(start), BOTTOM);
        floor.end(start, Duration::from_millis(1), true, Some(job));
        assert_eq!(floor.begin(start), job);
        assert!(floor.hid_something());
        floor.end(start, Duration::from_millis(1), true, Some(job));
        assert_eq!(floor.begin(start + Duration::from_secs(1)), BOTTOM);
        assert!(!floor.hid_something());
    }

    #[test]
    fn a_claim_that_is_not_full_takes_it_away() {
        let mut floor = Floor::default();
        let job = (100, DateTime::UNIX_EPOCH + Duration::from_secs(10), 7);
        let start = Instant::now();

        floor.begin(start);
        floor.end(start, Duration::from_millis(1), true, Some(job));
        assert_eq!(floor.begin(start), job);
        floor.end(start, Duration::from_millis(1), false, Some(job));
        assert_eq!(floor.begin(start), BOTTOM);
    }
}
