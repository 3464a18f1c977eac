//! `dalsegno serve`: everything in one process.
//!
//! Order matters. Start: address and probes, database, schema, then the announcement. End: requests and work drain
//! while the database is still there; the private Postgres stops last.

use std::{net::SocketAddr, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde::Serialize;

use crate::{
    clock::SystemClock,
    config::Config,
    console,
    db::{self, Database, Use},
    http::{self, RouterState},
    jobs::{self, Pool, Services},
    queue,
    shutdown::Shutdown,
    telemetry::Telemetry,
    traces::{self, Traces},
    worker::{self, Connections},
};

/// The announcement to the person who started the service, once it is ready.
#[derive(Debug, Clone, Serialize)]
pub struct Ready {
    pub version: &'static str,
    /// Address of the web console.
    pub console: String,
    pub address: String,
    /// The configuration file; `None` without one.
    pub config: Option<String>,
    /// Data folder of a private Postgres; `None` with a given server, which keeps nothing on this machine.
    pub data_dir: Option<String>,
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
    #[error(transparent)]
    Services(#[from] jobs::Error),
    #[error(transparent)]
    Traces(#[from] traces::Error),
    #[error(
        "running jobs did not stop within {waited_secs} s and were dropped; other workers claim them when their leases end"
    )]
    StopTimeout { waited_secs: u64 },
    #[error("cannot read the address of the listener")]
    Address(#[source] std::io::Error),
}

/// Runs the service until `shutdown`, calling `announce` once it is ready.
pub async fn serve(
    config: Config,
    telemetry: &Telemetry,
    shutdown: Shutdown,
    announce: impl FnOnce(&Ready),
) -> Result<(), Error> {
    // Before anything is opened: a service with unusable settings does not start.
    let traces = Traces::start(&config.traces)?;
    let services =
        Services::build(&config, Arc::new(SystemClock), jobs::program(), traces.clone())?;
    let listener = http::bind("http.listen", config.http.listen).await?;
    let address = format!("http://{}", listener.local_addr().map_err(Error::Address)?);
    tracing::info!(address, "listening");
    let (stop_timeout, config) = (config.shutdown.stop_timeout(), Arc::new(config));
    let front = RouterState::new(telemetry.metrics.clone(), shutdown.clone());
    let mut database = None;
    let all = Box::pin(async {
        let router = http::router_with_pages(&config.http, front.clone(), console::pages());
        let served = http::run(&config.http, shutdown.clone(), router, listener);
        let worked = run(&config, &services, &front, address, &mut database, announce);
        let ((), worked) =
            tokio::join!(shut_down_after(&shutdown, served), shut_down_after(&shutdown, worked));
        worked
    });
    let ended = shutdown.until_stop_timeout(stop_timeout, all).await;
    traces.flush().await;
    let closed = match database {
        Some(database) => Database::close(database).await,
        None => Ok(()),
    };
    match ended {
        None => return Err(Error::StopTimeout { waited_secs: stop_timeout.as_secs() }),
        Some(Err(Error::Database(db::Error::Stopped))) => {}
        Some(ended) => ended?,
    }
    closed?;
    tracing::info!("stopped");
    Ok(())
}

/// Returns the address of the API and the console on an open database, and the future that serves them until `shutdown`. Other processes
/// do the work. If the address of the configuration is taken, another port is used.
pub async fn serve_pages(
    config: Arc<Config>,
    telemetry: &Telemetry,
    shutdown: &Shutdown,
    database: &Database,
) -> Result<(String, BoxFuture<'static, ()>), Error> {
    const LISTEN: &str = "http.listen";
    let traces = Traces::start(&config.traces)?;
    let services = Services::build(&config, Arc::new(SystemClock), jobs::program(), traces)?;
    let listener = match http::bind(LISTEN, config.http.listen).await {
        Err(http::Error::InUse { address, .. }) => {
            http::bind(LISTEN, SocketAddr::new(address.ip(), 0)).await
        }
        bound => bound,
    }?;
    let address = format!("http://{}", listener.local_addr().map_err(Error::Address)?);
    let front = RouterState::new(telemetry.metrics.clone(), shutdown.clone());
    front.open(worker::app(&config, &services, &front, database));
    let router = http::router_with_pages(&config.http, front, console::pages());
    let shutdown = shutdown.clone();
    let served = async move { http::run(&config.http, shutdown, router, listener).await };
    Ok((address, served.boxed()))
}

/// Opens and prepares the database, then works on it. The caller closes it, once nothing uses it any more.
async fn run(
    config: &Arc<Config>,
    services: &Arc<Services>,
    front: &RouterState,
    address: String,
    database: &mut Option<Database>,
    announce: impl FnOnce(&Ready),
) -> Result<(), Error> {
    let shutdown = &front.shutdown;
    let opened = Database::open(&config.database, Use::Serve, &shutdown.soft).await?;
    let database = database.insert(opened);
    let (settings, stop) = (&config.database, &shutdown.soft);
    let prepare = async || prepare_schema(config, database).await;
    database.retry_while_away(settings, stop, queue::is_outage, prepare).await?;
    let app = worker::app(config, services, front, database);
    let check_keys = async || {
        http::check_keys(&config.http, &database.pool, app.clock.now()).await.map_err(Error::Http)
    };
    database.retry_while_away(settings, stop, queue::is_outage, check_keys).await?;
    front.open(app);
    let ready = ready_report(config, address, database);
    tracing::info!(address = ready.address, database = ready.database, "ready");
    announce(&ready);
    let connections = worker::build_connections(database);
    let [turns, upkeep] = [Pool::Turns, Pool::Upkeep]
        .map(|pool| run_pool(config, shutdown, services, &connections, pool))
        .map(|work| shut_down_after(shutdown, work));
    let (turns, upkeep) = tokio::join!(turns, upkeep);
    turns?;
    Ok(upkeep?)
}

/// Runs one pool. A pool without slots is left to separate worker processes.
async fn run_pool(
    config: &Config,
    shutdown: &Shutdown,
    services: &Arc<Services>,
    connections: &Connections,
    pool: Pool,
) -> Result<(), worker::Error> {
    match pool.slots(&config.worker) {
        0 if pool == Pool::Turns => {
            jobs::drop_removed_conversations(services, &connections.pool, &shutdown.soft).await;
        }
        0 => shutdown.soft.cancelled().await,
        _ => {
            worker::run_pool(config, services.clone(), connections, shutdown.clone(), pool).await?
        }
    }
    Ok(())
}

/// Starts the shutdown when `part` ends, for any reason. Half a service would look healthy.
async fn shut_down_after<T>(shutdown: &Shutdown, part: impl Future<Output = T>) -> T {
    let ended = part.await;
    shutdown.soft.cancel();
    ended
}

/// Migrates the schema, or waits until another process has migrated it.
async fn prepare_schema(config: &Config, database: &Database) -> Result<(), Error> {
    if config.database.migrate_on_start {
        return Ok(database.migrate().await?);
    }
    Ok(db::wait_for_schema(&database.pool).await?)
}

fn ready_report(config: &Config, address: String, database: &Database) -> Ready {
    let data_dir = &config.service.data_dir;
    let shown = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
    Ready {
        version: env!("CARGO_PKG_VERSION"),
        console: format!("{address}/"),
        address,
        config: config.file.as_ref().map(|file| file.display().to_string()),
        data_dir: config.database.url.is_none().then(|| shown.display().to_string()),
        database: database.describe(),
    }
}
