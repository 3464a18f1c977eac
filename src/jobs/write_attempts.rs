//! The attempts to write the results of a call that was paid for.

use std::time::Duration;

use tokio::time::sleep;

/// Number of the first attempts. After them, the error or the run decides if there is another.
const N_FIRST: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Counts the attempts of one write, and waits between them.
pub(super) struct WriteAttempts {
    n: u32,
    wait: Duration,
}

impl WriteAttempts {
    /// Begins with the first attempt.
    pub(super) fn new() -> Self {
        Self { n: 1, wait: FIRST_WAIT }
    }

    /// Returns true if the next attempt is one of the first.
    pub(super) fn has_more(&self) -> bool {
        self.n < N_FIRST
    }

    /// Waits before the next attempt, each time twice as long, up to a maximum.
    pub(super) async fn wait(&mut self) {
        sleep(self.wait).await;
        (self.n, self.wait) = (self.n + 1, (self.wait * 2).min(MAX_WAIT));
    }
}
