//! The worker processes, `worker-turns` and `worker-upkeep`, and the same pools inside `dalsegno serve`.
//!
//! A process joins a database that a service has prepared, and works until it is told to stop.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::queue::Connections;
use crate::{
    app::App,
    clock::SystemClock,
    config::Config,
    db::{self, Database, Use},
    doctor,
    http::{self, RouterState},
    jobs::{self, Pool, Services},
    queue::{self, Identity, Notices},
    scheduler,
    shutdown::Shutdown,
    telemetry::Telemetry,
    tools::Tools,
    traces::{self, Traces},
};

/// Time that the tasks beside the queue have to end after the last job.
const TIDY_LIMIT: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] db::Error),
    #[error(transparent)]
    Services(#[from] jobs::Error),
    #[error(transparent)]
    Http(#[from] http::Error),
    #[error(transparent)]
    Traces(#[from] traces::Error),
    #[error(
        "turns need a local port on 127.0.0.1 or ::1 for their tools; allow this process to listen there"
    )]
    Endpoint(#[source] std::io::Error),
    #[error("worker.{pool}_slots is 0, so this process would run no jobs; set it to 1 or more")]
    NoSlots { pool: &'static str },
    #[error(
        "running jobs did not stop within {waited_secs} s and were dropped; other workers claim them when their leases end"
    )]
    StopTimeout { waited_secs: u64 },
    #[error("cannot run the worker of the pool `{pool}`")]
    Work { pool: &'static str, source: queue::WorkerError },
}

/// Runs one pool in a process of its own: opens the database, works until the shutdown, closes it.
pub async fn run(
    config: Config,
    telemetry: &Telemetry,
    shutdown: Shutdown,
    pool: Pool,
) -> Result<(), Error> {
    if pool.slots(&config.worker) == 0 {
        return Err(Error::NoSlots { pool: pool.name() });
    }
    let config = Arc::new(config);
    // Before the database is opened: a process with unusable settings fails at once instead of waiting for its
    // database.
    let traces = Traces::start(&config.traces)?;
    let services =
        Services::build(config.as_ref(), Arc::new(SystemClock), jobs::program(), traces.clone())?;
    let front = RouterState::new(telemetry.metrics.clone(), shutdown.clone());
    let worked = Box::pin(open_and_work(&config, services, &front, pool));
    let worked = match config.worker.listen {
        Some(address) => {
            run_with_probes(config.http.header_timeout(), address, &front, worked).await
        }
        None => worked.await,
    };
    traces.flush().await;
    worked
}

async fn run_with_probes(
    header_timeout: Duration,
    address: SocketAddr,
    front: &RouterState,
    worked: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let listener = http::bind("worker.listen", address).await?;
    let address = format!("http://{}", listener.local_addr().unwrap_or(address));
    tracing::info!(address, "listening");
    tokio::select! {
        () = http::run_probes(header_timeout, front.clone(), listener) => Ok(()),
        worked = worked => worked,
    }
}

async fn open_and_work(
    config: &Arc<Config>,
    services: Arc<Services>,
    front: &RouterState,
    pool: Pool,
) -> Result<(), Error> {
    let shutdown = front.shutdown.clone();
    let opened = Database::open(&config.database, Use::Join, &shutdown.soft).await;
    let database = match opened {
        Err(db::Error::Stopped) => return Ok(()),
        opened => opened?,
    };
    front.open(app(config, &services, front, &database));
    let worked = run_pool_on(config, services, &database, shutdown, pool).await;
    let closed = database.close().await;
    tracing::info!(pool = pool.name(), "worker stopped");
    worked?;
    Ok(closed?)
}

/// Collects the parts that requests need, once the database is open.
pub fn app(
    config: &Config,
    services: &Arc<Services>,
    front: &RouterState,
    database: &Database,
) -> App {
    App {
        config: Arc::new(config.into()),
        pool: database.pool.clone(),
        places: App::transaction_permits(&database.pool),
        clock: services.clock.clone(),
        agents: services.library.clone(),
        previews: jobs::previews(services.clone()),
        rerun_routes: jobs::rerun_routes(services.clone()),
        examination: doctor::examination(
            config,
            services.clock.clone(),
            front.shutdown.soft.clone(),
        ),
        tools: services.tools.clone(),
        metrics: front.metrics.clone(),
        traces: services.traces.clone(),
        shutdown: front.shutdown.clone(),
    }
}

/// Builds the connections of a worker on an open database.
pub fn build_connections(database: &Database) -> Connections {
    Connections {
        pool: database.pool.clone(),
        session: database.session_options.clone(),
        notices: Arc::default(),
    }
}

/// Runs one pool on an open database, until the shutdown is requested and its last job has ended.
pub async fn run_pool(
    config: &Config,
    services: Arc<Services>,
    connections: &Connections,
    shutdown: Shutdown,
    pool: Pool,
) -> Result<(), Error> {
    let database = &connections.pool;
    let endpoint = match pool {
        Pool::Turns => Some(open_endpoint(&services).await?),
        Pool::Upkeep => None,
    };
    let settings = queue::Config {
        queues: vec![pool.name().to_owned()],
        slots: pool.slots(&config.worker),
        drain_timeout_secs: config.shutdown.drain_timeout_secs,
        ..config.queue.clone()
    };
    let (registry, stop) = (jobs::registry(services.clone()), CancellationToken::new());
    // The scheduler stops when the drain begins: other processes, or the next start, fire what is due meanwhile.
    let soft = shutdown.soft.clone();
    // Pools of one process share their connections, and each has a listener of its own.
    let notices = Arc::new(Notices::default());
    let connections = Connections { notices: notices.clone(), ..connections.clone() };
    let worked = queue::run_worker(settings, identity(), registry, connections, shutdown);
    let worked = Box::pin(worked);
    let tidied = async {
        // Each of these tasks runs once per process, so one pool has it.
        match pool {
            Pool::Turns => {
                let host = identity().host;
                // Two processes on one host may have different data folders.
                let place = format!("{host} {}", config.service.data_dir.display());
                tokio::join!(
                    serve_turns(config, &services, database, endpoint, &stop),
                    jobs::end_lost_tasks(&services, database, &stop),
                    services.renew_rate_limits(database, &stop),
                    // Files of sessions are on the hosts that run turns.
                    jobs::remove_old_folders(&services, database, &host, &stop),
                    jobs::remove_erased_files(&services, database, &place, &stop),
                );
            }
            Pool::Upkeep => {
                jobs::request_embeddings(&services, database).await;
                scheduler::run(&config.scheduler, database, &*services.clock, &notices, &soft)
                    .await;
            }
        }
    };
    // A task that still waits for a lost database is dropped. It goes on after the next start.
    let late = async {
        stop.cancelled().await;
        tokio::time::sleep(TIDY_LIMIT).await;
    };
    let tidied = Box::pin(async {
        tokio::select! { () = tidied => {} () = late => {} }
    });
    let worked = async {
        let worked = worked.await;
        stop.cancel();
        worked
    };
    let (worked, ()) = tokio::join!(worked, tidied);
    worked.map_err(|source| Error::Work { pool: pool.name(), source })
}

/// Listens for tool calls of turns. Called before the first turn begins.
async fn open_endpoint(services: &Services) -> Result<TcpListener, Error> {
    let listener = http::bind_turns().await.map_err(Error::Endpoint)?;
    services.endpoint.open(listener.local_addr().map_err(Error::Endpoint)?);
    Ok(listener)
}

/// Serves tool calls until the last turn has ended: a draining turn still uses its tools.
async fn serve_turns(
    config: &Config,
    services: &Services,
    database: &PgPool,
    endpoint: Option<TcpListener>,
    stop: &CancellationToken,
) {
    let Some(listener) = endpoint else { return };
    let tools = Tools { pool: database.clone(), settings: services.tools.clone() };
    http::run_turns(&config.http, tools, listener, stop.cancelled()).await;
}

async fn run_pool_on(
    config: &Config,
    services: Arc<Services>,
    database: &Database,
    shutdown: Shutdown,
    pool: Pool,
) -> Result<(), Error> {
    let await_schema = async || db::wait_for_schema(&database.pool).await;
    let settings = &config.database;
    match database.retry_while_away(settings, &shutdown.soft, queue::is_outage, await_schema).await
    {
        Err(db::Error::Stopped) => return Ok(()),
        schema => schema?,
    }
    tracing::info!(pool = pool.name(), database = database.describe(), "worker ready");
    let (stop, stop_timeout) = (shutdown.clone(), config.shutdown.stop_timeout());
    let connections = build_connections(database);
    let worked = run_pool(config, services, &connections, shutdown, pool);
    let ended = stop.until_stop_timeout(stop_timeout, worked).await;
    ended.ok_or(Error::StopTimeout { waited_secs: stop_timeout.as_secs() })?
}

fn identity() -> Identity {
    let host = rustix::system::uname();
    Identity {
        host: host.nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
