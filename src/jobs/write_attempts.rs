//! The attempts to write the results of a call that was paid for.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{causes::causes, domain::class};

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

/// The attempts to write a call beside turns, or what was made of its answer, while the database is away.
pub(super) struct WriteRetries<'a> {
    cancel: &'a CancellationToken,
    attempts: WriteAttempts,
}

impl<'a> WriteRetries<'a> {
    /// Begins with the first attempt. `cancel` is that of the run.
    pub(super) fn new(cancel: &'a CancellationToken) -> Self {
        Self { cancel, attempts: WriteAttempts::new() }
    }

    /// Waits before the next attempt. Returns false if there is none: the database is not away, or the first attempts have failed and the
    /// run has to stop, because its lease or its time is over, its job was cancelled, or its worker drains.
    pub(super) async fn wait_after(
        &mut self,
        error: &(dyn std::error::Error + Send + Sync + 'static),
    ) -> bool {
        let is_stopped = self.cancel.is_cancelled() && !self.attempts.has_more();
        if is_stopped || !class::is_database_away(error) {
            return false;
        }
        tracing::warn!(error = causes(error), "cannot write a call beside turns, trying again");
        self.attempts.wait().await;
        true
    }
}
