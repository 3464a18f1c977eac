//! `dalsegno serve`: everything in one process.
//!
//! Order matters. Start: address, database, schema, then the announcement. End: requests and work drain while
//! the database is still there; the private Postgres stops last.

use std::sync::Arc;

use serde::Serialize;
use tokio::net::TcpListener;

use crate::{
    app::App,
    clock::SystemClock,
    config::Config,
    db::{self, Database, Use},
    http,
    shutdown::Shutdown,
    telemetry::Telemetry,
    worker::{self, Pool},
};

/// What is told to the person who started the service, once it can be used.
#[derive(Debug, Clone, Serialize)]
pub struct Ready {
    pub version: &'static str,
    pub address: String,
    pub data_dir: String,
    pub database: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] db::Error),
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error(transparent)]
    Worker(#[from] worker::Error),
    #[error(
        "running work did not stop within {waited_secs} s and was dropped; its leases run out by themselves"
    )]
    StopTimeout { waited_secs: u64 },
    #[error("the address of the listener cannot be read")]
    Address(#[source] std::io::Error),
}

/// Runs the service until `shutdown`, calling `announce` once it is ready.
pub async fn serve(
    config: Config,
    telemetry: &Telemetry,
    shutdown: Shutdown,
    announce: impl FnOnce(&Ready),
) -> Result<(), Error> {
    let listener = http::bind(&config.http).await?;
    let opened = Database::open(&config.database, Use::Serve, &shutdown.soft).await;
    let database = match opened {
        Err(db::Error::Stopped) => return Ok(()),
        opened => opened?,
    };
    let served = run(config, &database, telemetry, shutdown, listener, announce).await;
    let closed = database.close().await;
    match served {
        Err(Error::Database(db::Error::Stopped)) => {}
        served => served?,
    }
    Ok(closed?)
}

async fn run(
    config: Config,
    database: &Database,
    telemetry: &Telemetry,
    shutdown: Shutdown,
    listener: TcpListener,
    announce: impl FnOnce(&Ready),
) -> Result<(), Error> {
    let prepared = shutdown.soft.run_until_cancelled(prepare_schema(&config, database)).await;
    prepared.ok_or(db::Error::Stopped)??;
    let ready = Ready {
        version: env!("CARGO_PKG_VERSION"),
        address: format!("http://{}", listener.local_addr().map_err(Error::Address)?),
        data_dir: std::path::absolute(&config.service.data_dir)
            .unwrap_or_else(|_| config.service.data_dir.clone())
            .display()
            .to_string(),
        database: database.describe(),
    };
    let app = App {
        config: Arc::new(config),
        pool: database.pool.clone(),
        clock: Arc::new(SystemClock),
        metrics: telemetry.metrics.clone(),
        shutdown: shutdown.clone(),
    };
    let stop_timeout = app.config.shutdown.stop_timeout();
    tracing::info!(address = ready.address, database = ready.database, "ready");
    announce(&ready);
    let pools = [Pool::Turns, Pool::Upkeep].map(|pool| {
        let (app, stop) = (app.clone(), app.shutdown.clone());
        async move {
            let worked = worker::work(&app.config, &app.pool, stop, pool).await;
            // A pool that cannot work ends the service: half a service looks healthy and is not.
            app.shutdown.soft.cancel();
            worked
        }
    });
    let [turns, upkeep] = pools;
    let all = Box::pin(async { tokio::join!(http::run(app, listener), turns, upkeep) });
    let ended = shutdown.until_stop_timeout(stop_timeout, all).await;
    let (served, turns, upkeep) =
        ended.ok_or(Error::StopTimeout { waited_secs: stop_timeout.as_secs() })?;
    tracing::info!("stopped");
    served?;
    turns?;
    Ok(upkeep?)
}

async fn prepare_schema(config: &Config, database: &Database) -> Result<(), Error> {
    match config.database.migrate_on_start {
        true => db::migrate(&database.pool).await?,
        false => db::require_supported_version(&database.pool).await?,
    }
    Ok(())
}
