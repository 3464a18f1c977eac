//! One running server: started by this service, or taken over from one that died.

mod launch;
mod takeover;

use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::address::Address;
use super::home::Home;
use super::process::{self, Signal};
use super::{Error, poll};
use dalsegno_base::causes::causes;

pub(super) use launch::{Cluster, Port};
pub(super) use takeover::{stop_server, wait_until_vacant};

/// Time limit of an immediate shutdown: Postgres kills its own stuck children after 5 s.
const IMMEDIATE_LIMIT: Duration = Duration::from_secs(10);

/// Interval of the checks if a server that is not our child still lives.
const LIFE_SIGN_PAUSE: Duration = Duration::from_millis(500);

/// A server that accepts connections. A drop asks the server to end, without waiting.
#[derive(Debug)]
pub(super) struct Server {
    pub pid: u32,
    pub address: Address,
    home: Home,
    /// `None` for a server that was taken over.
    child: Option<Child>,
}

impl Server {
    /// Returns when the server's main process has ended, for any reason.
    pub async fn wait_until_ended(&mut self) {
        if let Some(child) = &mut self.child {
            if let Err(error) = child.wait().await {
                tracing::warn!(
                    error = causes(&error),
                    "cannot wait for the end of the private Postgres"
                );
            }
            return;
        }
        while self.is_alive() {
            sleep(LIFE_SIGN_PAUSE).await;
        }
    }

    /// Ends the server: first with a fast shutdown, then with an immediate one.
    pub async fn stop(mut self, limit: Duration) -> Result<(), Error> {
        if self.ends_after(Signal::INT, limit).await? {
            return Ok(());
        }
        tracing::warn!(
            pid = self.pid,
            "the private Postgres does not stop in time: shutting it down immediately"
        );
        if self.ends_after(Signal::QUIT, IMMEDIATE_LIMIT).await? {
            return Ok(());
        }
        Err(Error::StopTimeout { pid: self.pid, waited_secs: (limit + IMMEDIATE_LIMIT).as_secs() })
    }

    async fn ends_after(&mut self, signal: Signal, limit: Duration) -> Result<bool, Error> {
        if !self.is_alive() {
            return Ok(true);
        }
        process::send(self.pid, signal);
        let gone = poll::until(Instant::now() + limit, || Ok((!self.is_alive()).then_some(())));
        Ok(gone.await?.is_some())
    }

    fn is_alive(&mut self) -> bool {
        match &mut self.child {
            // Our own child keeps its pid until it is reaped here, so no other process can have it.
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => process::is_server(self.pid, &self.home.data(), &self.home.cluster_name()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_alive() {
            process::send(self.pid, Signal::INT);
        }
    }
}
