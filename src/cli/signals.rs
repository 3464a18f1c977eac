//! Signal handling for one command.

use std::time::Duration;

use anyhow::anyhow;

use super::{Exit, Failure};
use crate::shutdown::Shutdown;

/// Runs a command to its end. The first signal asks it to stop, the second insists, the third drops it. Dropping still
/// signals a private Postgres, without waiting for it.
pub(super) async fn run_under_signals(
    shutdown: &Shutdown,
    drain_timeout: Duration,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    tokio::select! {
        // Polled first, so that the handlers are installed before the command starts anything.
        biased;
        third = shutdown.on_signals(drain_timeout) => match third {
            Ok(()) => Ok(Exit::Interrupted),
            Err(error) => {
                Err(Failure::failed(anyhow!(error).context("cannot receive signals")))
            }
        },
        ended = command => ended,
    }
}
