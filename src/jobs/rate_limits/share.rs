//! The share of one limit in this process.

use std::time::Duration;

use crate::domain::rate_limits::{Lease, Measure, RateLimit, WantedShare};

#[derive(Debug)]
pub(super) struct Share {
    limit: RateLimit,
    /// The rest of the leased share. Negative: calls have used more.
    left: f64,
    /// Concurrent calls that run.
    in_use: f64,
    /// Charges since the last lease, from which the next one is estimated.
    used: f64,
    /// Charges of calls that were refused since the last lease.
    pub(super) asked: f64,
    /// The rest of the limit after the last lease, for the others.
    available: f64,
    /// True if tasks waited for the limit at the last lease.
    pub(super) is_awaited: bool,
    /// Upper bound of the rest of the limit, which the provider has told.
    at_most: Option<f64>,
    /// True until the next lease, which takes the bound into account for all workers.
    is_bounded: bool,
    /// Leases since the last call.
    n_idle: u32,
}

/// Leases without a call after which a process gives its share up.
const MAX_IDLE: u32 = 10;
/// Debt in seconds that a call which does not wait may add to.
const MAX_DEBT_SECS: f64 = 3.0;

impl Share {
    pub(super) fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            left: 0.0,
            in_use: 0.0,
            used: 0.0,
            asked: 0.0,
            available: 0.0,
            is_awaited: false,
            at_most: None,
            is_bounded: false,
            n_idle: 0,
        }
    }

    pub(super) fn has_space(&self) -> bool {
        self.left >= 1.0 && !self.is_bounded
    }

    /// Charges a call that begins.
    pub(super) fn begin(&mut self, amount: f64) {
        self.charge(amount);
        if self.is_of_calls() {
            self.in_use += 1.0;
        }
    }

    /// Counts a call that was charged when its task was served.
    pub(super) fn begin_granted(&mut self, amount: f64) {
        self.used += amount;
        if self.is_of_calls() {
            self.in_use += 1.0;
        }
    }

    /// Charges a further amount; a negative one is a refund.
    pub(super) fn charge(&mut self, amount: f64) {
        self.left -= amount;
        self.used += amount.max(0.0);
    }

    /// Ends a concurrent call. Returns true if tasks wait for its place.
    pub(super) fn end_call(&mut self) -> bool {
        self.in_use -= 1.0;
        self.left += 1.0;
        self.is_awaited
    }

    /// Replaces the amount of the limit, which the provider may change.
    pub(super) fn set_amount(&mut self, amount: f64) {
        self.limit.amount = amount;
    }

    /// Bounds what is left of the limit for all workers.
    pub(super) fn bound(&mut self, at_most: f64) {
        self.at_most = Some(self.at_most.map_or(at_most, |bound| bound.min(at_most)));
        self.is_bounded |= at_most < 1.0;
    }

    /// Stops calls for this time, in all workers.
    pub(super) fn pause(&mut self, after: Duration) {
        if !self.is_of_calls() {
            self.bound(1.0 - self.limit.amount / 60.0 * after.as_secs_f64());
        }
    }

    /// Returns the time until a limit is out of debt, if that is more than a moment.
    pub(super) fn debt(&self) -> Option<Duration> {
        let debt_secs = -(self.available + self.left) * 60.0 / self.limit.amount;
        (!self.is_of_calls() && debt_secs > MAX_DEBT_SECS)
            .then(|| Duration::from_secs_f64(debt_secs))
    }

    /// Returns what the next lease reports and asks for. Until its answer there is nothing left: another worker may be granted what it
    /// takes back.
    pub(super) fn take_wanted(&mut self, is_last: bool) -> WantedShare {
        let (used, asked) = (std::mem::take(&mut self.used), std::mem::take(&mut self.asked));
        self.n_idle = if used + asked > 0.0 { 0 } else { self.n_idle.saturating_add(1) };
        let expected = (2.0 * used).max(asked).max(1.0);
        WantedShare {
            limit: self.limit.clone(),
            returned: std::mem::take(&mut self.left),
            in_use: self.in_use,
            wanted: if is_last || self.n_idle >= MAX_IDLE { 0.0 } else { expected },
            at_most: self.at_most.take(),
        }
    }

    /// Takes what a lease has granted.
    pub(super) fn apply(&mut self, lease: &Lease) {
        self.left += lease.granted;
        self.is_bounded = self.at_most.is_some_and(|bound| bound < 1.0);
        (self.available, self.is_awaited) = (lease.available, lease.is_awaited);
    }

    /// Gives the share up, because a lease failed. A debt stays.
    pub(super) fn lose(&mut self, wanted: &WantedShare) {
        self.left += wanted.returned.min(0.0);
        if let Some(at_most) = wanted.at_most {
            self.bound(at_most);
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        let has_ended = self.in_use == 0.0 && self.left == 0.0 && self.at_most.is_none();
        self.n_idle > MAX_IDLE && has_ended
    }

    fn is_of_calls(&self) -> bool {
        self.limit.measure == Measure::ConcurrentCalls
    }
}
