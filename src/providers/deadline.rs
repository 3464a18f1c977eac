//! Time limits of a provider: for one step, for all of them, and the cancellation.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Deadline and cancellation that every step of a call shares.
#[derive(Debug)]
pub(super) struct CallDeadline<'a> {
    cancel: &'a CancellationToken,
    deadline: Instant,
    total: Duration,
}

/// Reason why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GaveUp {
    Cancelled,
    /// This step took too long.
    Step,
    /// The call as a whole took too long.
    Total {
        after: Duration,
    },
}

impl<'a> CallDeadline<'a> {
    pub(super) fn starting_now(total: Duration, cancel: &'a CancellationToken) -> Self {
        Self { cancel, deadline: Instant::now() + total, total }
    }

    /// Waits for a step that has to end by `until`. Cancellation wins where both are ready.
    pub(super) async fn wait<F: Future>(
        &self,
        until: Instant,
        step: F,
    ) -> Result<F::Output, GaveUp> {
        let total = GaveUp::Total { after: self.total };
        // A timeout polls its future first: a sender that is always ready would never meet the deadline.
        if Instant::now() >= self.deadline {
            return Err(total);
        }
        let ends = until.min(self.deadline);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(GaveUp::Cancelled),
            output = timeout_at(ends, step) => {
                output.map_err(|_| if ends == self.deadline { total } else { GaveUp::Step })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_ready_step_does_not_outlast_the_call() {
        let (cancel, total) = (CancellationToken::new(), Duration::from_secs(1));
        let patience = CallDeadline::starting_now(total, &cancel);
        let far = Instant::now() + Duration::from_secs(60);
        assert_eq!(patience.wait(far, std::future::ready(7)).await, Ok(7));
        tokio::time::advance(total).await;
        let late = patience.wait(far, std::future::ready(7)).await;
        assert_eq!(late, Err(GaveUp::Total { after: total }));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_that_ends_a_wait_is_named() {
        let cancel = CancellationToken::new();
        let patience = CallDeadline::starting_now(Duration::from_secs(5), &cancel);
        let soon = Instant::now() + Duration::from_secs(1);
        let silence = std::future::pending::<()>;
        assert_eq!(patience.wait(soon, silence()).await, Err(GaveUp::Step));
        let total = GaveUp::Total { after: Duration::from_secs(5) };
        assert_eq!(patience.wait(soon + Duration::from_secs(60), silence()).await, Err(total));
        cancel.cancel();
        let cancelled = CallDeadline::starting_now(Duration::from_secs(5), &cancel);
        assert_eq!(cancelled.wait(soon, std::future::ready(())).await, Err(GaveUp::Cancelled));
    }
}
