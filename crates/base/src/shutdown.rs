//! Two-step shutdown: the first signal stops gently, the second ends the wait for running work, the third exits at once.
//!
//! `soft`: take no new work, let running work end. `hard`: stop waiting for it. `hard` implies `soft`, and comes by
//! itself `drain_timeout_secs` after it. `stop_timeout_secs` after `hard`, remaining work is dropped. Every part that
//! runs work holds a clone.

use std::{future::Future, time::Duration};

use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::settings::Checks;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub drain_timeout_secs: u64,
    pub stop_timeout_secs: u64,
}

/// The two tokens of a shutdown.
#[derive(Debug, Clone)]
pub struct Shutdown {
    pub soft: CancellationToken,
    pub hard: CancellationToken,
}

impl Config {
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout_secs)
    }

    pub fn stop_timeout(&self) -> Duration {
        Duration::from_secs(self.stop_timeout_secs)
    }

    pub fn check(&self, checks: &mut Checks<'_>) {
        // 0 is valid here: no wait.
        checks.secs("shutdown.drain_timeout_secs", self.drain_timeout_secs, 0);
        checks.secs("shutdown.stop_timeout_secs", self.stop_timeout_secs, 1);
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    pub fn new() -> Self {
        let hard = CancellationToken::new();
        Self { soft: hard.child_token(), hard }
    }

    /// Turns signals of the process into the two steps. Returns at the third signal, after which the process should exit at once.
    pub async fn on_signals(&self, drain_timeout: Duration) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        tokio::select! {
            name = next() => tracing::info!(signal = name, "stopping; a second signal skips the wait"),
            () = self.soft.cancelled() => {}
        }
        self.soft.cancel();
        tokio::select! {
            name = next() => tracing::warn!(signal = name, "second signal: not waiting for running work"),
            () = tokio::time::sleep(drain_timeout) => tracing::warn!("the drain timeout has passed: stopping running work"),
            () = self.hard.cancelled() => {}
        }
        self.hard.cancel();
        let name = next().await;
        tracing::warn!(signal = name, "third signal: exiting without waiting");
        Ok(())
    }

    /// Runs `work` until it ends, or until the hard step. Returns `None` if it was cut off.
    pub async fn until_hard<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.hard.run_until_cancelled(work).await
    }

    /// Runs `work` until it ends, or until `stop_timeout` after the hard step. Returns `None` if it was cut off.
    pub async fn until_stop_timeout<T>(
        &self,
        stop_timeout: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let late = async {
            self.hard.cancelled().await;
            tokio::time::sleep(stop_timeout).await;
        };
        tokio::select! {
            ended = work => Some(ended),
            () = late => None,
        }
    }
}
