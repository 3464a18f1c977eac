//! The drain: from the first signal to the last run.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{super::run::Stop, Parts};

impl Parts {
    /// Tells runs to stop once the drain time is over, and abandons ends some time after that.
    pub(super) fn drain(&self) -> impl Future<Output = ()> + Send + 'static {
        let (slots, shutdown, config) =
            (Arc::clone(&self.slots), self.shutdown.clone(), Arc::clone(&self.config));
        let (ended, abandon) = (self.ended.clone(), self.abandon.clone());
        async move {
            tokio::select! {
                () = shutdown.soft.cancelled() => {}
                () = shutdown.hard.cancelled() => shutdown.soft.cancel(),
                () = ended.cancelled() => return,
            }
            tracing::info!(
                n_runs = slots.n_taken(),
                drain_secs = config.drain_timeout_secs,
                "draining: no more jobs are claimed"
            );
            let _ = timeout(config.drain_timeout(), async {
                tokio::select! { () = shutdown.hard.cancelled() => {} () = ended.cancelled() => {} }
            })
            .await;
            let stopped_at = Instant::now();
            // Repeats, because the answer to the last claim may still come.
            while !ended.is_cancelled() {
                slots.running().iter().for_each(|run| run.stop(Stop::Drain));
                if stopped_at.elapsed() > config.cancel_grace() + config.lease() {
                    abandon.cancel();
                }
                let _ = timeout(Duration::from_millis(100), ended.cancelled()).await;
            }
        }
    }
}
