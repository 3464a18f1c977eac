//! The clock of this service: it follows the clock of the database. Leases alone are measured by the database itself.
//!
//! Rows are written by several processes on several hosts, and by statements that use the database's time. So each
//! process follows the clock of the database. It measures it at each connection of the pool and every 10 seconds. A
//! process has one database, and therefore one such clock.
//!
//! A measurement bounds the difference of the two clocks by its round trip: the database has read its clock after the
//! question was sent and before the answer arrived. Bounds of several measurements are intersected, so a slow answer
//! changes nothing. A measurement outside of the bounds replaces them: the clock of the database was set, or another
//! server has taken over.
//!
//! A better measurement may lie a little before the one it replaces. Then the time stands still until it has caught up.

use std::{
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Executor as _, PgConnection, Row as _};

pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> DateTime<Utc>;

    /// The clock of the machine, for comparison.
    fn machine_now(&self) -> DateTime<Utc> {
        self.now()
    }
}

/// The clock of the database. The clock of the machine until the first connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A clock that moves only when it is told to. For tests.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<DateTime<Utc>>>,
}

/// Bounds of the database's time minus the monotonic clock of this process, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    least: i64,
    most: i64,
    /// Moment of the measurement, by the monotonic clock.
    at: i64,
}

/// Drift of two clocks per second, in microseconds: twice the limit of NTP.
const DRIFT_PER_SEC: i64 = 1_000;

/// Limit of a backward step that `now` waits out, in microseconds. After a larger step the clock was set, and `now`
/// follows it.
const LONG_STEP: i64 = 5_000_000;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
static BOUNDS: Mutex<Option<Bounds>> = Mutex::new(None);
/// Last time that `now` returned, in microseconds.
static LAST: AtomicI64 = AtomicI64::new(i64::MIN);

/// Measures the clock of the database on a connection. The statement is a simple query, which is one round trip.
pub async fn follow_database(conn: &mut PgConnection) -> sqlx::Result<()> {
    let sent = monotonic();
    let row = conn
        .fetch_one(sqlx::raw_sql(
            "select (extract(epoch from clock_timestamp()) * 1000000)::bigint",
        ))
        .await?;
    let received = monotonic();
    let theirs: i64 = row.try_get(0)?;
    let measured = Bounds { least: theirs - received, most: theirs - sent, at: received };
    let mut bounds = BOUNDS.lock().unwrap_or_else(PoisonError::into_inner);
    *bounds = Some(bounds.map_or(measured, |known| known.narrowed(measured)));
    Ok(())
}

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        let bounds = *BOUNDS.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match bounds {
            Some(bounds) => monotonic() + bounds.middle(),
            None => self.machine_now().timestamp_micros(),
        };
        DateTime::from_timestamp_micros(held(&LAST, now)).unwrap_or_else(|| self.machine_now())
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn machine_now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

impl Bounds {
    /// Returns the best estimate: half of the round trip counts as the way there.
    fn middle(self) -> i64 {
        self.least + (self.most - self.least) / 2
    }

    fn narrowed(self, measured: Self) -> Self {
        let drift = (measured.at - self.at) * DRIFT_PER_SEC / 1_000_000;
        let least = measured.least.max(self.least - drift);
        let most = measured.most.min(self.most + drift);
        if least > most { measured } else { Self { least, most, at: measured.at } }
    }
}

impl ManualClock {
    pub fn at(now: DateTime<Utc>) -> Self {
        Self { now: Arc::new(Mutex::new(now)) }
    }

    pub fn advance(&self, by: TimeDelta) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `now`, or the last answer again where `now` is a little before it.
fn held(last: &AtomicI64, now: i64) -> i64 {
    let taken = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        (now >= last || last.saturating_sub(now) >= LONG_STEP).then_some(now)
    });
    taken.map_or_else(|last| last, |_| now)
}

/// Returns the microseconds since the first call in this process.
fn monotonic() -> i64 {
    i64::try_from(STARTED.elapsed().as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_slow_answer_changes_nothing_and_a_fast_one_narrows_the_bounds() {
        let first = Bounds { least: 500, most: 900, at: 0 };
        let slow = Bounds { least: -80_000, most: 40_000, at: 10 };
        assert_eq!(first.narrowed(slow), Bounds { at: 10, ..first });
        let fast = Bounds { least: 600, most: 700, at: 10 };
        assert_eq!(first.narrowed(fast).middle(), 650);
    }

    #[test]
    fn bounds_widen_with_time_to_follow_a_drift() {
        let first = Bounds { least: 500, most: 900, at: 0 };
        let later = Bounds { least: 1_500, most: 9_500, at: 2 * SECOND };
        assert_eq!(first.narrowed(later), Bounds { least: 1_500, most: 2_900, at: 2 * SECOND });
    }

    #[test]
    fn frequently_measured_bounds_widen_too() {
        let mut bounds = Bounds { least: 0, most: 10, at: 0 };
        for n in 1..=20 {
            let at = n * SECOND / 2;
            bounds = bounds.narrowed(Bounds { least: -9_000, most: 9_000, at });
        }
        assert_eq!(bounds, Bounds { least: -9_000, most: 9_000, at: 10 * SECOND });
    }

    #[test]
    fn a_small_step_back_is_waited_out_and_a_long_one_is_followed() {
        let last = AtomicI64::new(i64::MIN);
        let answers = [100, 40, 99, 101, 101 - LONG_STEP].map(|now| held(&last, now));
        assert_eq!(answers, [100, 100, 100, 101, 101 - LONG_STEP]);
    }

    #[test]
    fn a_reset_clock_is_followed_at_once() {
        let first = Bounds { least: 500, most: 900, at: 0 };
        let set = Bounds { least: -3_600 * SECOND, most: -3_600 * SECOND + 300, at: SECOND };
        assert_eq!(first.narrowed(set), set);
    }
}
