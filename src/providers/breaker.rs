//! Circuit breaker: stops calls to a host that does not answer, and probes it later with one call.
//!
//! It is closed until some failures in a row, then open for a while, then one call probes. Refused callers are told how long to wait. Time
//! comes in by parameter.
//!
//! Races: a probe that is cancelled ends without a verdict. Its permit then gives the probe to the next caller, so that the breaker does
//! not wait forever. Calls that began before the breaker opened may end after it. Their successes close it, because the host does answer.
//! Their failures do not prolong it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Breaker {
    state: Mutex<State>,
    n_failures_to_open: u32,
    open_for: Duration,
}

/// Permission for one call. Report its success or failure, or drop it if there is neither.
#[derive(Debug)]
#[must_use]
pub(super) struct Permit<'a> {
    breaker: &'a Breaker,
    probe: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { n_failures: u32 },
    Open { until: Instant, probing: bool },
}

/// Time to wait for the verdict of another caller's probe.
const PROBE_WAIT: Duration = Duration::from_secs(2);

impl Breaker {
    pub(super) fn new(n_failures_to_open: u32, open_for: Duration) -> Self {
        Self { state: Mutex::new(State::Closed { n_failures: 0 }), n_failures_to_open, open_for }
    }

    /// Returns a permit, or the time to wait before asking again.
    pub(super) fn admit(&self, now: Instant) -> Result<Permit<'_>, Duration> {
        let mut state = self.state();
        let probe = match &mut *state {
            State::Closed { .. } => false,
            State::Open { until, .. } if now < *until => return Err(*until - now),
            State::Open { probing: true, .. } => return Err(PROBE_WAIT),
            State::Open { probing, .. } => {
                *probing = true;
                true
            }
        };
        Ok(Permit { breaker: self, probe })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    pub(super) fn record_success(mut self) {
        self.probe = false;
        *self.breaker.state() = State::Closed { n_failures: 0 };
    }

    pub(super) fn record_failure(mut self, now: Instant) {
        let mut state = self.breaker.state();
        let n_failures = match *state {
            State::Closed { n_failures } => n_failures.saturating_add(1),
            State::Open { .. } if self.probe => self.breaker.n_failures_to_open,
            State::Open { .. } => return,
        };
        *state = match n_failures < self.breaker.n_failures_to_open {
            true => State::Closed { n_failures },
            false => State::Open { until: now + self.breaker.open_for, probing: false },
        };
        self.probe = false;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.probe
            && let State::Open { probing, .. } = &mut *self.breaker.state()
        {
            *probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_FOR: Duration = Duration::from_secs(30);

    fn open_breaker(now: Instant) -> Breaker {
        let breaker = Breaker::new(3, OPEN_FOR);
        for _ in 0..3 {
            breaker.admit(now).unwrap().record_failure(now);
        }
        breaker
    }

    #[test]
    fn the_breaker_opens_only_after_consecutive_failures() {
        let now = Instant::now();
        let breaker = Breaker::new(3, OPEN_FOR);
        for _ in 0..5 {
            breaker.admit(now).unwrap().record_failure(now);
            breaker.admit(now).unwrap().record_failure(now);
            breaker.admit(now).unwrap().record_success();
        }
        assert!(breaker.admit(now).is_ok());
        assert_eq!(open_breaker(now).admit(now).unwrap_err(), OPEN_FOR);
    }

    #[test]
    fn one_probe_decides() {
        let now = Instant::now();
        let later = now + OPEN_FOR;
        let breaker = open_breaker(now);
        let probe = breaker.admit(later).unwrap();
        assert_eq!(breaker.admit(later).unwrap_err(), PROBE_WAIT);
        probe.record_failure(later);
        assert_eq!(breaker.admit(later).unwrap_err(), OPEN_FOR);
        breaker.admit(later + OPEN_FOR).unwrap().record_success();
        assert!(breaker.admit(later).is_ok());
    }

    #[test]
    fn a_probe_without_a_verdict_is_repeated() {
        let now = Instant::now();
        let breaker = open_breaker(now);
        drop(breaker.admit(now + OPEN_FOR).unwrap());
        assert!(breaker.admit(now + OPEN_FOR).is_ok());
    }

    #[test]
    fn a_late_failure_does_not_prolong_the_open_state() {
        let now = Instant::now();
        let breaker = Breaker::new(1, OPEN_FOR);
        let early = breaker.admit(now).unwrap();
        breaker.admit(now).unwrap().record_failure(now);
        early.record_failure(now + OPEN_FOR / 2);
        assert!(breaker.admit(now + OPEN_FOR).is_ok());
    }
}
