//! Jittered waits, so that processes which started or failed together drift apart.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// Returns the wait before the next try against a database that failed `n_failures` times in a row. Never much more
/// than two seconds: after an outage the work has to go on within five, and one part may have to wait for another.
pub(super) fn wait_after_failure(n_failures: u32) -> Duration {
    let doubled = SHORTEST.saturating_mul(1 << n_failures.clamp(1, 7).saturating_sub(1));
    jittered(doubled.min(LONGEST))
}

/// Returns `interval` with a jitter of 10 %.
pub(super) fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(rand::random_range(0.9..1.1))
}
