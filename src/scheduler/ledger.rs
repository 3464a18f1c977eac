//! The sums of the ledger by day, in one time zone for all processes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::time::Instant;

use crate::{
    causes::causes,
    domain::{costs, schedules},
};

/// Shortest time between two warnings of a kind: the scheduler looks every few seconds or minutes.
const WARN_EVERY: Duration = Duration::from_secs(3_600);

/// Adds up the ledger, and warns of what is wrong with it at most once an hour.
#[derive(Debug, Default)]
pub(super) struct LedgerSums {
    failure: Throttle,
    other_zone: Throttle,
}

/// The last time of a warning.
#[derive(Debug, Default)]
struct Throttle(Option<Instant>);

impl LedgerSums {
    /// Adds the calls since the last look to the sums of their days.
    ///
    /// Days are those of the time zone of the nightly cleanup, which the scheduler that started last has stored. Schedulers with several
    /// time zones would otherwise remove the sums of each other, and make them again.
    pub(super) async fn add_up(&mut self, pool: &PgPool, time_zone: &str, now: DateTime<Utc>) {
        let stored = match schedules::get(pool, schedules::NIGHTLY_CLEANUP, now).await {
            Ok(nightly) => nightly.time_zone,
            Err(error) => return self.warn_of_failure(&causes(&error)),
        };
        if stored != time_zone && self.other_zone.is_due(Instant::now()) {
            tracing::warn!(
                configured = time_zone,
                used = stored,
                "another scheduler has a different `scheduler.time_zone`: the ledger is added up by the days of the scheduler that started last, and reports by other days are slower; set the same time zone for all processes"
            );
        }
        if let Err(error) = costs::add_up_days(pool, &stored).await {
            self.warn_of_failure(&causes(&error));
        }
    }

    fn warn_of_failure(&mut self, error: &str) {
        if self.failure.is_due(Instant::now()) {
            tracing::warn!(
                error,
                "cannot add up the ledger by day, trying again with each look: until then cost reports are exact, but read more calls"
            );
        } else {
            tracing::debug!(error, "cannot add up the ledger by day");
        }
    }
}

impl Throttle {
    /// Returns true for the first warning, and for one that comes long enough after the last.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= WARN_EVERY);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_at_most_once_an_hour() {
        let (mut throttle, begin) = (Throttle::default(), Instant::now());
        let due = [0, 5, 3_599, 3_600, 3_605, 7_300]
            .map(|secs| throttle.is_due(begin + Duration::from_secs(secs)));
        assert_eq!(due, [true, false, false, true, false, true]);
    }
}
