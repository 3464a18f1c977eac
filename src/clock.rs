//! Time. Everything but leases takes it from here; leases use the database's clock.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

pub trait Clock: std::fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> DateTime<Utc>;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A clock that moves only when it is told to. For tests.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<DateTime<Utc>>>,
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
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
