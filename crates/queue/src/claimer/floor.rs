//! Skips index entries of jobs that are already claimed.
//!
//! While a long transaction keeps vacuum from removing dead rows, each claim walks over the index entries of all jobs
//! claimed before. So while claims come back full, the next one begins where the last one ended. A job that becomes
//! ready below that floor (after a late commit) is found by the next claim without a floor. One is made at least once a
//! second.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// Longest time between two claims without a floor, unless [`FULL_LOOK_SHARE`] stretches it.
const FULL_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Claims without a floor take at most one part in this many of the time.
const FULL_LOOK_SHARE: u32 = 20;

/// A position in the order of claims: priority, ready since, id.
pub(super) type ClaimPosition = (i16, DateTime<Utc>, i64);

/// A position before all jobs: no priority is negative, and no job becomes ready before 1970.
const BOTTOM: ClaimPosition = (-1, DateTime::UNIX_EPOCH, 0);

/// The position at which the next claim begins.
#[derive(Debug, Default)]
pub(super) struct Floor {
    at: Option<ClaimPosition>,
    full_look_at: Option<Instant>,
    used: bool,
}

impl Floor {
    /// Returns the floor of the next claim. It skips jobs of the floor's priority that come before it, and finds all
    /// more urgent ones.
    pub(super) fn begin(&mut self, now: Instant) -> ClaimPosition {
        let due = self.full_look_at.is_none_or(|at| now >= at);
        self.used = !due && self.at.is_some();
        match self.at {
            Some(floor) if self.used => floor,
            _ => BOTTOM,
        }
    }

    /// Records the result of a claim. `last` is the position of the last job without a group; `full` says that every
    /// slot was filled.
    pub(super) fn end(
        &mut self,
        now: Instant,
        took: Duration,
        full: bool,
        last: Option<ClaimPosition>,
    ) {
        if !self.used {
            self.full_look_at = Some(now + FULL_LOOK_EVERY.max(took * FULL_LOOK_SHARE));
        }
        self.at = if full { last } else { None };
    }

    /// Returns true if the last claim had a floor.
    pub(super) fn had_floor(&self) -> bool {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_rises_with_full_claims_and_is_reset_every_second() {
        let mut floor = Floor::default();
        let job = (100, DateTime::UNIX_EPOCH + Duration::from_secs(10), 7);
        let start = Instant::now();

        assert_eq!(floor.begin(start), BOTTOM);
        floor.end(start, Duration::from_millis(1), true, Some(job));
        assert_eq!(floor.begin(start), job);
        assert!(floor.had_floor());
        floor.end(start, Duration::from_millis(1), true, Some(job));
        assert_eq!(floor.begin(start + Duration::from_secs(1)), BOTTOM);
        assert!(!floor.had_floor());
    }

    #[test]
    fn a_claim_that_is_not_full_resets_the_floor() {
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
