//! The private server for one process: started by it, or by the service beside it.
//!
//! A service's server lives as long as the service, so other processes attach to it. A command's server ends with the
//! command: other processes wait until its folder is free.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    Error, Server, Use,
    embedded::{self, Config, Owner},
};
use crate::causes::causes;

/// Interval of attempts: another command holds the folder for about a second.
const OCCUPIED_PAUSE: Duration = Duration::from_millis(100);

/// Attaches or starts. Waits up to `start_timeout_secs` for a folder that is in use for a short time.
pub(super) async fn open(
    config: &Config,
    purpose: Use,
    stop: &CancellationToken,
) -> Result<(PgConnectOptions, Server), Error> {
    let deadline = Instant::now() + Duration::from_secs(config.start_timeout_secs);
    let mut has_told = false;
    loop {
        match attach_or_start(config, purpose, stop).await {
            Err(Error::Embedded(error))
                if is_worth_waiting(&error, purpose) && Instant::now() < deadline =>
            {
                if !std::mem::replace(&mut has_told, true) {
                    tracing::info!(
                        error = causes(&error),
                        "waiting for the lock of the data folder"
                    );
                }
            }
            opened => return opened,
        }
        let pause = stop.run_until_cancelled(sleep(OCCUPIED_PAUSE));
        pause.await.ok_or(Error::Stopped)?;
    }
}

async fn attach_or_start(
    config: &Config,
    purpose: Use,
    stop: &CancellationToken,
) -> Result<(PgConnectOptions, Server), Error> {
    let is_commands = embedded::holder(config).is_some_and(|holder| holder.owner == Owner::Command);
    if purpose != Use::Serve && !is_commands {
        let attached = stop.run_until_cancelled(embedded::attach(config)).await;
        if let Some(attached) = attached.ok_or(Error::Stopped)?? {
            return Ok((attached.connect_options(), Server::Visited(attached)));
        }
    }
    let owner = match purpose {
        Use::Serve => Owner::Service,
        Use::Visit => Owner::Command,
        Use::Look if embedded::exists(config) => Owner::Command,
        Use::Look => return Err(Error::NoDatabase { data_dir: config.data_dir.clone() }),
        Use::Join => return Err(Error::NoService { data_dir: config.data_dir.clone() }),
    };
    match embedded::start_until(config, owner, stop).await {
        Ok(embedded) => Ok((embedded.connect_options(), Server::Private(embedded))),
        Err(embedded::Error::Stopped) => Err(Error::Stopped),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if waiting for the folder helps. A service waits only for commands: another service stays. A command
/// waits for both, because it can soon attach to a starting service.
fn is_worth_waiting(error: &embedded::Error, purpose: Use) -> bool {
    let embedded::Error::AlreadyRunning { holder, .. } = error else {
        return false;
    };
    purpose != Use::Serve || holder.is_some_and(|holder| holder.owner == Owner::Command)
}
