//! The database connection of one command.

use tokio_util::sync::CancellationToken;

use super::{Context, Exit, Failure, signals::run_under_signals};
use crate::{
    db::{self, Database, Use},
    shutdown::Shutdown,
    telemetry,
};

/// Seconds that a command waits for the database, unless the setting differs from its default.
const CONNECT_TIMEOUT_SECS: u64 = 5;

/// Longest wait for the database about which nothing is logged: the error that follows says the same. A longer silence would look like a
/// command that hangs.
const QUIET_WAIT_SECS: u64 = 10;

/// Opens the database, runs `work` until it ends or a signal arrives, and closes the database in every case.
pub(super) async fn with_database(
    context: &Context,
    purpose: Use,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut config = context.load()?;
    // Deployments run `migrate up` (`Use::Visit`) before their database is ready.
    if purpose == Use::Look && config.database.has_default_connect_timeout {
        config.database.connect_timeout_secs = CONNECT_TIMEOUT_SECS;
    }
    // Warnings about slow statements are for logs of services.
    let mut filter = format!("sqlx::query=off,{}", config.log.filter);
    if purpose == Use::Look && config.database.connect_timeout_secs <= QUIET_WAIT_SECS {
        filter.push_str(",dalsegno::db::wait_for_server=off");
    }
    telemetry::init(&telemetry::Config { filter, ..config.log })?;
    let shutdown = Shutdown::new();
    let worked = Box::pin(on_database(&config.database, purpose, &shutdown.soft, work));
    run_under_signals(&shutdown, config.shutdown.drain_timeout(), worked).await
}

async fn on_database(
    config: &db::Config,
    purpose: Use,
    stop: &CancellationToken,
    work: impl AsyncFnOnce(&Database) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let database = Database::open(config, purpose, stop).await?;
    let worked = stop.run_until_cancelled(work(&database)).await;
    let closed = database.close().await;
    let exit = worked.unwrap_or(Ok(Exit::Interrupted))?;
    closed?;
    Ok(exit)
}
