//! The life of a worker, from its start to its last end.
//!
//! apalis runs the handlers. Its `Monitor` supervises the worker, its worker pulls claims from [`ClaimedJobs`] and
//! passes them through the tower layers, and `parallelize` gives each run a task of its own. The other parts talk to
//! the database, each with its own connection. No error ends one of them. A panic in one, which is a bug here or in a
//! library, ends the worker in good order and with an error. Half a worker would look healthy.
//!
//! The order of the end matters:
//! 1. The claimer stops. The jobs that it has claimed are handed over and run.
//! 2. Runs finish, or are told to stop when the drain time is over. Their jobs are given back without using up an attempt.
//! 3. The last ends are acknowledged; only then does apalis's worker close.
//! 4. Listener, upkeep and, last of all, the heartbeat stop. Until here the lease was renewed.

mod drain;
mod panics;
mod parts;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use apalis_core::{
    monitor::Monitor,
    worker::{builder::WorkerBuilder, ext::parallelize::ParallelizeExt},
};
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    backend::ClaimedJobs,
    completer::Ends,
    config::{self, Config},
    crash_points::CrashPoints,
    heartbeat::Registration,
    registry::{Handlers, Registry},
    run::RunContext,
    runner::{CallHandler, EndEveryRun},
    slots::Slots,
    telemetry,
    wakeup::{Notices, WakeSignals},
};
use dalsegno_base::{causes::causes, shutdown::Shutdown};

/// Time limit for upkeep and heartbeat after the last end is written. Without a sign-off the lease runs out.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

/// The reason why a worker did not start, or did not stop in order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] config::Invalid),
    /// Two handlers for one kind.
    #[error("two handlers are registered for `{0}`; remove one of them")]
    RegisteredTwice(&'static str),
    /// The registry is empty.
    #[error("no handler is registered, so there is nothing to claim; add one with Registry::with")]
    NoHandlers,
    /// The claimer ended without a request to stop.
    #[error(
        "the claimer ended unexpectedly, which is a bug; the log above says where. Start the worker again"
    )]
    Unasked,
    /// A part of the worker panicked.
    #[error(
        "the {part} of the worker panicked, which is a bug; the log above says where. Start the worker again"
    )]
    Panicked {
        /// Name of the part.
        part: &'static str,
    },
    /// apalis's monitor gave up.
    #[error("the handlers cannot run")]
    Monitor(#[source] apalis_core::monitor::MonitorError),
}

/// The description of this process in the list of workers.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The host or container.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
}

/// The connections that a worker makes.
#[derive(Clone)]
pub struct Connections {
    /// Pool for handlers.
    pub pool: PgPool,
    /// Options of connections that keep their session on the server, so that settings and LISTEN work. `None` behind a
    /// transaction pooler: the worker then polls.
    pub session: Option<PgConnectOptions>,
    /// Rung by the listening worker for notifications that are not about jobs.
    pub notices: Arc<Notices>,
}

impl From<PgPool> for Connections {
    /// Uses the options of the pool, for servers without a pooler.
    fn from(pool: PgPool) -> Self {
        let session = Some((*pool.connect_options()).clone());
        Self { pool, session, notices: Arc::default() }
    }
}

/// Runs jobs until `shutdown`. Returns when every run has ended and every end is written, or left to its lease because
/// the database stayed away.
pub async fn run<S: Clone + Send + Sync + 'static>(
    config: Config,
    identity: Identity,
    registry: Registry<S>,
    connections: impl Into<Connections>,
    shutdown: Shutdown,
) -> Result<(), Error> {
    config.validate()?;
    let handlers = registry.into_handlers().map_err(Error::RegisteredTwice)?;
    if handlers.is_empty() {
        return Err(Error::NoHandlers);
    }
    let connections = connections.into();
    telemetry::begin(&config, &handlers, config.listen && connections.session.is_some());
    Parts::new(config, identity, handlers, connections, shutdown).run().await
}

/// The parts of a worker and what they share.
struct Parts {
    config: Arc<Config>,
    registration: Registration,
    handlers: Arc<Handlers>,
    shared: Arc<RunContext>,
    slots: Arc<Slots>,
    bells: Arc<WakeSignals>,
    session: Option<PgConnectOptions>,
    shutdown: Shutdown,
    /// The part that panicked first.
    panicked: Arc<OnceLock<&'static str>>,
    /// Cancelled when the last end is written.
    ended: CancellationToken,
    /// Cancelled when the worker stops waiting for ends.
    abandon: CancellationToken,
}

impl Parts {
    fn new(
        config: Config,
        identity: Identity,
        handlers: Handlers,
        connections: Connections,
        shutdown: Shutdown,
    ) -> Self {
        #[cfg(feature = "test-fakes")]
        let crash_points = CrashPoints::armed(config.crash_at, config.panic_at);
        #[cfg(not(feature = "test-fakes"))]
        let crash_points = CrashPoints::default();
        let Connections { pool, session, notices } = connections;
        Self {
            registration: registration(&config, identity, &handlers),
            slots: Arc::new(Slots::new(config.slots)),
            config: Arc::new(config),
            handlers: Arc::new(handlers),
            shared: Arc::new(RunContext { pool, crash_points }),
            bells: Arc::new(WakeSignals { notices, ..WakeSignals::default() }),
            session,
            shutdown,
            panicked: Arc::default(),
            ended: CancellationToken::new(),
            abandon: CancellationToken::new(),
        }
    }

    async fn run(self) -> Result<(), Error> {
        let (identity, identity_seen) = watch::channel(None);
        let (claims, claimed) = mpsc::unbounded_channel();
        let (ends, ends_to_write) = Ends::channel(Arc::clone(&self.bells));
        let backend = ClaimedJobs::new(claimed, Arc::clone(&self.slots), Arc::clone(&self.config));

        let heartbeat =
            self.heartbeat(identity).run(self.ended.clone(), self.shutdown.soft.clone());
        let claimer = self.claimer(identity_seen.clone(), claims).run(self.shutdown.soft.clone());
        let upkeep = self.upkeep(identity_seen).run(self.ended.clone());
        let heartbeat = tokio::spawn(self.watch_panics("heartbeat", heartbeat));
        let around = TaskTracker::new();
        around.spawn(self.watch_panics("claimer", claimer));
        around.spawn(self.watch_panics("upkeep", upkeep));
        around.spawn(self.watch_panics("listener", self.listener()));
        around.spawn(self.watch_panics("drain", self.drain()));
        let writers = TaskTracker::new();
        for _ in 0..self.config.end_batches_in_flight {
            writers.spawn(self.run_writer_watched(Arc::clone(&ends_to_write)));
        }

        let served = serve(backend, self.handler(), self.end_every_run(ends)).await;
        writers.close();
        writers.wait().await;
        self.ended.cancel();
        around.close();
        let farewell = timeout(FAREWELL_LIMIT, async {
            around.wait().await;
            heartbeat.await
        });
        match farewell.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(error = causes(&error), "the heartbeat ended with an error")
            }
            Err(_elapsed) => tracing::warn!(
                "the database does not answer: stopping without signing off this worker"
            ),
        }
        served.map_err(Error::Monitor)?;
        if let Some(part) = self.panicked.get() {
            return Err(Error::Panicked { part });
        }
        if self.shutdown.soft.is_cancelled() { Ok(()) } else { Err(Error::Unasked) }
    }
}

/// Lets apalis run the jobs of the backend until there are no more.
async fn serve(
    backend: ClaimedJobs,
    handler: CallHandler,
    around: EndEveryRun,
) -> Result<(), apalis_core::monitor::MonitorError> {
    let exhausted = backend.exhausted();
    let monitor = Monitor::new()
        .register(move |_restarts| {
            WorkerBuilder::new("dalsegno")
                .backend(backend.clone())
                // Layers added first are outermost. Each run is spawned with all layers below, so that a busy handler
                // delays neither the others nor the claims.
                .parallelize(tokio::spawn)
                .layer(around.clone())
                .build(handler.clone())
        })
        // A second safety net: nothing here returns an error or panics, and if something does, the work goes on.
        .should_restart(|_worker, error| {
            tracing::error!(error = causes(&error), "the worker of apalis failed: restarting it");
            true
        });
    monitor
        .run_with_signal(async move {
            exhausted.cancelled().await;
            Ok(())
        })
        .await
}

fn registration(config: &Config, identity: Identity, handlers: &Handlers) -> Registration {
    let mut queues = config.queues.clone();
    if queues.is_empty() {
        queues = handlers.values().map(|handler| handler.policy.queue.to_owned()).collect();
    }
    queues.sort();
    queues.dedup();
    Registration {
        queues,
        kinds: handlers.keys().map(|kind| (*kind).to_owned()).collect(),
        host: identity.host,
        pid: i32::try_from(identity.pid).unwrap_or(0),
        version: identity.version,
    }
}
