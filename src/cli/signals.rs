//! The signals of the process, for the length of one command.

use std::time::Duration;

use anyhow::anyhow;

use super::{Exit, Failure};
use crate::shutdown::Shutdown;

/// Runs a command to its end: the first signal asks for it, the second insists, the third drops the command as
/// it is. Dropping still tells a private Postgres to end; nobody waits for it then.
pub(super) async fn under_signals(
    shutdown: &Shutdown,
    drain_timeout: Duration,
    command: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    tokio::select! {
        // First, so that the handlers are in place before the command starts anything.
        biased;
        third = shutdown.on_signals(drain_timeout) => match third {
            Ok(()) => Ok(Exit::Interrupted),
            Err(error) => {
                Err(Failure::failed(anyhow!(error).context("signals cannot be received")))
            }
        },
        ended = command => ended,
    }
}
