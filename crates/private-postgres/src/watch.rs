//! Watches the server for the life of the service.
//!
//! If the server dies under a live service, it is restarted at the same address, so that the service's pools find it.
//! The watch also keeps the server's log short.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep};

use super::address::Address;
use super::lock::FolderLock;
use super::server::{Cluster, Port, Server, wait_until_vacant};
use super::{Error, log_file};
use dalsegno_base::causes::causes;

const LOG_CHECK_PAUSE: Duration = Duration::from_secs(30);
const FIRST_RESTART_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_RESTART_PAUSE: Duration = Duration::from_secs(30);

/// The running watch. A drop ends the server, too, as long as the runtime lives.
#[derive(Debug)]
pub(super) struct Watch {
    pid: Arc<AtomicU32>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

impl Watch {
    /// Starts the watch. It holds the locks until the server has ended.
    pub fn begin(cluster: Cluster, server: Server, locks: Vec<FolderLock>) -> Self {
        let pid = Arc::new(AtomicU32::new(server.pid));
        let (stop, stopped) = oneshot::channel();
        let shown_pid = Arc::clone(&pid);
        let task = tokio::spawn(async move {
            let result = supervise(&cluster, server, &shown_pid, stopped).await;
            drop(locks);
            result
        });
        Self { pid, stop, task }
    }

    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    pub async fn end(self) -> Result<(), Error> {
        // It fails only when the task has ended already, which the next line reports.
        let _ = self.stop.send(());
        self.task.await?
    }
}

async fn supervise(
    cluster: &Cluster,
    mut server: Server,
    shown_pid: &AtomicU32,
    mut stop: oneshot::Receiver<()>,
) -> Result<(), Error> {
    let mut log_check = interval(LOG_CHECK_PAUSE);
    loop {
        tokio::select! {
            _ = &mut stop => return server.stop(cluster.stop_limit).await,
            () = server.wait_until_ended() => {
                tracing::error!(pid = server.pid, "the private Postgres exited: restarting it");
                let address = server.address.clone();
                server = tokio::select! {
                    _ = &mut stop => {
                        let deadline = Instant::now() + cluster.stop_limit;
                        return wait_until_vacant(&cluster.home, deadline).await;
                    }
                    server = restart(cluster, address) => server,
                };
                shown_pid.store(server.pid, Ordering::Relaxed);
            }
            _ = log_check.tick() => bound_log(cluster),
        }
    }
}

async fn restart(cluster: &Cluster, address: Address) -> Server {
    let mut pause = FIRST_RESTART_PAUSE;
    loop {
        match cluster.adopt_or_launch(address.clone(), Port::Stays).await {
            Ok(server) => return server,
            Err(error) => {
                tracing::error!(
                    error = causes(&error),
                    retry_in_ms = pause.as_millis(),
                    "cannot start the private Postgres"
                )
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_RESTART_PAUSE);
    }
}

fn bound_log(cluster: &Cluster) {
    if let Err(error) = log_file::limit_size(&cluster.home.log_file()) {
        tracing::warn!(error = causes(&error), "cannot truncate the log of the private Postgres");
    }
}
